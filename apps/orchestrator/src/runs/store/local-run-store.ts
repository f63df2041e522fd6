import type { RunSql } from "./run-sql.ts";
import type { Sql } from "@millwright/database";
import type { Message } from "../domain/message.ts";
import type { LeaseRef } from "../domain/worker-session.ts";

/**
 * Offers a new run's first execution to the client that executes it, before a worker can see it. Returns the
 * execution's id.
 */
export async function offerToClient(tx: RunSql, runUid: string, clientUid: string): Promise<number> {
  const { rows } = await tx.query<{ id: number }>(
    `WITH taken AS (
       UPDATE executions SET state = 'OFFERED', attempt = 1, is_local = true, worker_host = 'local' WHERE run_uid = $1 AND state = 'QUEUED' RETURNING id, run_uid),
     lease AS (
       INSERT INTO leases (execution_id, attempt, run_uid, session_uid, accepted, expires_at)
       SELECT id, 1, run_uid, $2, false, clock_timestamp() + $3 * interval '1 ms' FROM taken),
     run AS (UPDATE runs r SET state = 'PENDING', version = r.version + 1 FROM taken t WHERE r.uid = t.run_uid)
     SELECT id FROM taken`,
    [runUid, clientUid, tx.timings.leaseTtlMs],
  );
  return (rows[0] as { id: number }).id;
}

/** Returns the lease of a run that a client owns. */
export async function findLocalLease(sql: Sql, runUid: string, clientUid: string): Promise<LeaseRef | undefined> {
  const { rows } = await sql.query<LeaseRef>(
    `SELECT l.execution_id AS "executionId", l.attempt FROM leases l JOIN executions x ON x.id = l.execution_id
      WHERE l.run_uid = $1 AND l.session_uid = $2 AND l.accepted AND x.is_local`,
    [runUid, clientUid],
  );
  return rows[0];
}

/**
 * Returns follow-ups that were sent to an execution and whose delivery is not reported yet, oldest first. Their
 * attachments are not transferred, which the returned text states.
 */
export async function undeliveredFollowups(
  sql: Sql,
  runUid: string,
  executionId: number,
): Promise<Pick<Message, "uid" | "text">[]> {
  const { rows } = await sql.query<Pick<Message, "uid" | "text">>(
    `SELECT uid, text || coalesce((SELECT E'\n[' || count(*) || ' attached: not brought to a command that its client executes]' FROM message_attachments a WHERE a.message_uid = m.uid HAVING count(*) > 0), '') AS text
       FROM messages m
      WHERE run_uid = $1 AND execution_id = $2 AND taken_as = 'directive' AND kind = 'followup' AND delivered_at IS NULL AND NOT undeliverable ORDER BY seq`,
    [runUid, executionId],
  );
  return rows;
}

/** Returns the texts of follow-ups that were sent to an execution of a run, by uid. */
export async function textsOfFollowups(
  sql: Sql,
  runUid: string,
  executionId: number,
  uids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (uids.length === 0) return new Map();
  const { rows } = await sql.query<{ uid: string; text: string }>(
    "SELECT uid, text FROM messages WHERE run_uid = $1 AND execution_id = $2 AND taken_as = 'directive' AND uid = ANY($3::uuid[])",
    [runUid, executionId, uids],
  );
  return new Map(rows.map(({ uid, text }) => [uid, text]));
}
