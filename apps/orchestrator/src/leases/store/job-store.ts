import type { Sql } from "@millwright/database";
import type { Job } from "../../runs/domain/assignment.ts";
import type { FrozenConfig } from "../../runs/domain/resolved-run.ts";
import type { RunMode } from "../../runs/domain/run.ts";
import type { LeaseRef, WorkerSession } from "../../runs/domain/worker-session.ts";
import { IS_BUDGETED } from "../../budgets/store/budget-store.ts";
import { RUN_REF, toRunRef, type RunRefRow } from "./lease-store.ts";

type Row = RunRefRow & {
  title: string;
  mode: RunMode;
  interactive: boolean;
  metadata: Record<string, string>;
  frozen: FrozenConfig;
  traceparent: string | null;
  is_budgeted: boolean;
};

/**
 * Returns the jobs of executions that are offered to a session or whose leases the session owns, by execution id. The
 * values are immutable, so nothing is locked.
 */
export async function findJobs(
  sql: Sql,
  session: Pick<WorkerSession, "uid">,
  leases: readonly LeaseRef[],
): Promise<ReadonlyMap<number, Job>> {
  const { rows } = await sql.query<Row & { execution_id: number }>(
    `SELECT l.execution_id, ${RUN_REF}, r.title, r.mode, r.interactive, r.metadata, r.frozen, e.traceparent, ${IS_BUDGETED} AS is_budgeted
       FROM jsonb_to_recordset($1::jsonb) AS given ("executionId" bigint, attempt integer)
       JOIN leases l ON l.execution_id = given."executionId" AND l.attempt = given.attempt
       JOIN runs r ON r.uid = l.run_uid JOIN executions e ON e.id = l.execution_id
      WHERE l.session_uid = $2 AND l.execution_id = ANY (ARRAY(SELECT (jsonb_array_elements($1::jsonb)->>'executionId')::bigint))`,
    [JSON.stringify(leases), session.uid],
  );
  return new Map(rows.map((row) => [row.execution_id, toJob(row)]));
}

const toJob = (row: Row): Job => ({
  run: toRunRef(row),
  title: row.title,
  mode: row.mode,
  interactive: row.interactive,
  metadata: row.metadata,
  frozen: row.frozen,
  isBudgeted: row.is_budgeted,
  traceparent: row.traceparent ?? "",
});
