import type { WorkerSession } from "../domain/worker-session.ts";
import { Batcher, sendTo, type Sql } from "@millwright/database";
import type { Directive } from "../domain/directive.ts";
import type { NewDirective } from "../domain/run-change.ts";
import type { JsonObject } from "@millwright/json";

/** Inserts a directive for the current attempt. The run must be locked. */
export async function addDirective(
  tx: Sql,
  execution: { id: number; attempt: number },
  directive: NewDirective,
): Promise<void> {
  await sendTo(
    tx,
    `INSERT INTO execution_directives (execution_id, seq, attempt, kind, payload)
     SELECT $1, coalesce(max(seq), 0) + 1, $2, $3, $4::jsonb FROM execution_directives WHERE execution_id = $1`,
    [execution.id, execution.attempt, directive.kind, JSON.stringify(directive.payload)],
  );
}

type Row = {
  execution_id: number;
  seq: number;
  attempt: number;
  previous_seq: number;
  kind: Directive["kind"];
  payload: JsonObject;
};

/** Columns of a `Directive`, for `execution_directives d`. `previous_seq` counts acknowledged directives too. */
const COLUMNS = `d.execution_id, d.seq, d.attempt, d.kind, d.payload,
  coalesce((SELECT max(p.seq) FROM execution_directives p WHERE p.execution_id = d.execution_id AND p.attempt = d.attempt AND p.seq < d.seq), 0)
    AS previous_seq`;

/**
 * Returns a function that reads the directives that a worker session has not yet acknowledged, for the leases it owns,
 * in order. Concurrent reads are batched into one query.
 */
export function pendingDirectiveReader(sql: Sql) {
  const directives = new Batcher(async (sessionUids: readonly string[]) => {
    const { rows } = await sql.query<Row & { session_uid: string }>(
      `SELECT l.session_uid, ${COLUMNS}
         FROM leases l JOIN execution_directives d ON d.execution_id = l.execution_id AND d.attempt = l.attempt
        WHERE l.session_uid = ANY($1::uuid[]) AND l.accepted AND d.acked_at IS NULL ORDER BY d.execution_id, d.seq`,
      [sessionUids],
    );
    const found = Map.groupBy(rows, ({ session_uid: sessionUid }) => sessionUid);
    return sessionUids.map((uid) => (found.get(uid) ?? []).map(toDirective));
  });
  return ({ uid }: Pick<WorkerSession, "uid">): Promise<Directive[]> => directives.add(uid);
}

/**
 * Assigns interrupts that an earlier attempt did not acknowledge to the current attempt, because it continues the turn
 * that they were to end. Returns them, in order. Other directives end with their attempt: a message is delivered again
 * as input, and an execution that was to stop is not restarted. The run must be locked.
 */
export async function takeOverDirectives(tx: Sql, executionId: number, attempt: number): Promise<Directive[]> {
  const taken = "execution_id = $1 AND kind = 'interrupt' AND acked_at IS NULL";
  await sendTo(tx, `UPDATE execution_directives SET attempt = $2 WHERE ${taken}`, [executionId, attempt]);
  const { rows } = await tx.query<Row>(`SELECT ${COLUMNS} FROM execution_directives d WHERE ${taken} ORDER BY d.seq`, [
    executionId,
  ]);
  return rows.map(toDirective);
}

const toDirective = ({ execution_id, previous_seq, seq, attempt, kind, payload }: Row): Directive => ({
  executionId: execution_id,
  previousSeq: previous_seq,
  seq,
  attempt,
  kind,
  payload,
});

export type DirectiveAck = { readonly executionId: number; readonly attempt: number; readonly seq: number };

/**
 * Marks directives as received. Only heartbeats of the lease's owner write these columns, so the run need not be
 * locked.
 */
export async function ackDirectives(
  sql: Sql,
  session: Pick<WorkerSession, "uid">,
  acks: readonly DirectiveAck[],
): Promise<void> {
  const received = acks.filter(({ seq }) => seq > 0);
  if (received.length === 0) return;
  await sql.query(
    `UPDATE execution_directives d SET acked_at = clock_timestamp()
       FROM unnest($2::bigint[], $3::integer[], $4::bigint[]) AS a (execution_id, attempt, seq)
       JOIN leases l ON l.execution_id = a.execution_id AND l.attempt = a.attempt AND l.session_uid = $1
      WHERE d.execution_id = a.execution_id AND d.attempt = a.attempt AND d.seq <= a.seq AND d.acked_at IS NULL`,
    [session.uid, received.map((a) => a.executionId), received.map((a) => a.attempt), received.map((a) => a.seq)],
  );
}
