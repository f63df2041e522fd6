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
 * Returns the job of an execution that is offered to a session or whose lease the session owns. None of it ever
 * changes, so nothing is locked.
 */
export async function findJob(
  sql: Sql,
  session: Pick<WorkerSession, "uid">,
  { executionId, attempt }: LeaseRef,
): Promise<Job | undefined> {
  const { rows } = await sql.query<Row>(
    `SELECT ${RUN_REF}, r.title, r.mode, r.interactive, r.metadata, r.frozen, e.traceparent, ${IS_BUDGETED} AS is_budgeted
       FROM leases l JOIN runs r ON r.uid = l.run_uid JOIN executions e ON e.id = l.execution_id
      WHERE l.execution_id = $1 AND l.attempt = $2 AND l.session_uid = $3`,
    [executionId, attempt, session.uid],
  );
  const row = rows[0];
  return (
    row && {
      run: toRunRef(row),
      title: row.title,
      mode: row.mode,
      interactive: row.interactive,
      metadata: row.metadata,
      frozen: row.frozen,
      isBudgeted: row.is_budgeted,
      traceparent: row.traceparent ?? "",
    }
  );
}
