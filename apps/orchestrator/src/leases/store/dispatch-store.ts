import type { RunSql } from "../../runs/store/run-sql.ts";
import type { Sql } from "@millwright/database";
import { offerHash } from "../../runs/store/offer-token-store.ts";
import type { DispatchStatus, LeaseRef, OfferedLease, WorkerSession } from "../../runs/domain/worker-session.ts";

/**
 * Returns the live lease of a token, or undefined if the lease was lost, has ended, is to end, or was never opened to
 * this token. Locks its run.
 */
export async function findOfferedLease(
  tx: Sql,
  { executionId, attempt }: LeaseRef,
  token: string,
): Promise<OfferedLease | undefined> {
  await tx.query("SELECT uid FROM runs WHERE uid = (SELECT run_uid FROM executions WHERE id = $1) FOR NO KEY UPDATE", [
    executionId,
  ]);
  const { rows } = await tx.query<{
    is_taken: boolean;
    owner: string;
    key_uid: string;
    key_sealed: string;
    team_uid: string | null;
    worker_host: string;
  }>(
    `SELECT l.session_uid <> l.dispatcher_uid AS is_taken, h.instance_uid AS owner, d.key_uid, d.key_sealed, d.team_uid, d.worker_host
       FROM leases l JOIN worker_sessions d ON d.uid = l.dispatcher_uid JOIN worker_sessions h ON h.uid = l.session_uid
      WHERE l.execution_id = $1 AND l.attempt = $2 AND l.offer_hash = $3 AND l.accepted AND l.expires_at > clock_timestamp()
        AND (l.fence_at IS NULL OR l.session_uid <> l.dispatcher_uid)`,
    [executionId, attempt, offerHash(token)],
  );
  const row = rows[0];
  return (
    row && {
      isTaken: row.is_taken,
      owner: row.owner,
      dispatcher: {
        keyUid: row.key_uid,
        sealedKey: row.key_sealed,
        workerHost: row.worker_host,
        teamUid: row.team_uid ?? undefined,
      },
    }
  );
}

/**
 * Transfers the lease to another session. Limits that count from the claim (setup, run time) count from this transfer.
 * The run must be locked.
 */
export async function transferLease(
  tx: RunSql,
  { executionId, attempt }: LeaseRef,
  { uid: sessionUid }: Pick<WorkerSession, "uid">,
): Promise<void> {
  await tx.query(
    `WITH lease AS (UPDATE leases SET session_uid = $3, expires_at = clock_timestamp() + $4 * interval '1 ms' WHERE execution_id = $1 AND attempt = $2)
     UPDATE executions SET claimed_at = clock_timestamp() WHERE id = $1 AND attempt = $2 AND state = 'CLAIMED'`,
    [executionId, attempt, sessionUid, tx.timings.leaseTtlMs],
  );
}

/**
 * Returns the state of executions that a session dispatched. Renews those that no other session has taken; a session
 * that took one renews it itself. Locks lease rows only, in id order.
 */
export async function watchDispatches(
  sql: RunSql,
  session: Pick<WorkerSession, "uid" | "teamUid">,
  watched: readonly LeaseRef[],
): Promise<DispatchStatus[]> {
  if (watched.length === 0) return [];
  const { rows } = await sql.query<DispatchStatus>(
    `WITH given AS (SELECT * FROM unnest($2::bigint[], $3::integer[]) AS g (execution_id, attempt)),
          own AS (
            SELECT l.execution_id FROM leases l JOIN given g ON g.execution_id = l.execution_id AND g.attempt = l.attempt
             WHERE l.session_uid = $1 AND l.dispatcher_uid = $1 AND l.accepted ORDER BY l.execution_id FOR UPDATE OF l),
          renewed AS (UPDATE leases l SET expires_at = clock_timestamp() + $4 * interval '1 ms' FROM own o WHERE l.execution_id = o.execution_id RETURNING l.execution_id)
     SELECT g.execution_id AS "executionId", g.attempt, l.fence_at IS NOT NULL OR l.execution_id IS NULL AND coalesce(x.outcome = 'CANCELLED', false) AS "isStopping",
            CASE WHEN r.execution_id IS NOT NULL THEN 'WAITING' WHEN l.execution_id IS NOT NULL THEN 'TAKEN'
                 WHEN x.state = 'ENDED' THEN 'ENDED' ELSE 'LOST' END AS status
       FROM given g
       LEFT JOIN leases l ON l.execution_id = g.execution_id AND l.attempt = g.attempt AND l.dispatcher_uid = $1
       LEFT JOIN renewed r ON r.execution_id = g.execution_id
       LEFT JOIN executions x ON x.id = g.execution_id AND x.attempt = g.attempt
             AND ($5::uuid IS NULL OR EXISTS (SELECT 1 FROM runs o WHERE o.uid = x.run_uid AND o.owner_uid = $5))`,
    [
      session.uid,
      watched.map(({ executionId }) => executionId),
      watched.map(({ attempt }) => attempt),
      sql.timings.leaseTtlMs,
      session.teamUid ?? null,
    ],
  );
  return rows;
}
