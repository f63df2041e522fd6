import type { RunSql } from "../../runs/store/run-sql.ts";
import type { Sql } from "@millwright/database";
import { DomainError } from "@millwright/errors";
import type { LeaseRef, RenewedLease, WorkerSession } from "../../runs/domain/worker-session.ts";
import type { RunRef } from "../../runs/domain/run-token.ts";

export type RunRefRow = {
  run_uid: string;
  root_run_uid: string;
  owner_type: "team" | "user";
  owner_uid: string;
  agent_uid: string | null;
  factory_uid: string | null;
  creator_uid: string;
  conversation_uid: string;
  parent_run_uid: string | null;
};

/** Columns of a `RunRef`, for `runs r`. */
export const RUN_REF =
  "r.uid AS run_uid, r.root_run_uid, r.parent_run_uid, r.owner_type, r.owner_uid, r.agent_uid, r.factory_uid, r.creator_uid, r.conversation_uid";

export const toRunRef = (row: RunRefRow): RunRef => ({
  runUid: row.run_uid,
  rootRunUid: row.root_run_uid,
  parentRunUid: row.parent_run_uid ?? undefined,
  owner: { type: row.owner_type, uid: row.owner_uid },
  agentUid: row.agent_uid ?? undefined,
  factoryUid: row.factory_uid ?? undefined,
  creatorUid: row.creator_uid,
  conversationUid: row.conversation_uid,
});

export type ReportedLease = LeaseRef & { readonly phase: string };

/**
 * Renews the leases that a session owns. Leases missing from the result are lost. Locks lease rows only, in id order.
 */
export async function renewLeases(
  sql: RunSql,
  session: Pick<WorkerSession, "uid">,
  leases: readonly ReportedLease[],
): Promise<RenewedLease[]> {
  if (leases.length === 0) return [];
  const { rows } = await sql.query<
    RunRefRow & { execution_id: number; attempt: number; expires_at: Date; is_stopping: boolean }
  >(
    `WITH given AS (SELECT * FROM unnest($2::bigint[], $3::integer[], $4::text[]) AS g (execution_id, attempt, phase)),
          owned AS (
            SELECT l.execution_id, g.phase FROM leases l JOIN given g ON g.execution_id = l.execution_id AND g.attempt = l.attempt
             WHERE l.session_uid = $1 AND l.accepted ORDER BY l.execution_id FOR UPDATE OF l)
     UPDATE leases l SET expires_at = clock_timestamp() + $5 * interval '1 ms', phase = o.phase
       FROM owned o, runs r WHERE l.execution_id = o.execution_id AND r.uid = l.run_uid
     RETURNING l.execution_id, l.attempt, l.expires_at, l.fence_at IS NOT NULL AS is_stopping, ${RUN_REF}`,
    [
      session.uid,
      leases.map((lease) => lease.executionId),
      leases.map((lease) => lease.attempt),
      leases.map((lease) => lease.phase),
      sql.timings.leaseTtlMs,
    ],
  );
  return rows.map((row) => ({
    executionId: row.execution_id,
    attempt: row.attempt,
    expiresAt: row.expires_at,
    isStopping: row.is_stopping,
    run: toRunRef(row),
  }));
}

/** Returns the run of an attempt whose lease a session owns. Reads without a lock. */
export async function findRunOfLease(
  sql: Sql,
  session: Pick<WorkerSession, "uid">,
  lease: LeaseRef,
): Promise<string | undefined> {
  const { rows } = await sql.query<{ run_uid: string }>(
    "SELECT run_uid FROM leases WHERE execution_id = $1 AND attempt = $2 AND session_uid = $3 AND accepted",
    [lease.executionId, lease.attempt, session.uid],
  );
  return rows[0]?.run_uid;
}

/**
 * Locks the run of an attempt, for a write of the attempt, and returns a reference to it. The attempt must own the
 * execution (with `sessionUid`, through this session). A stopping execution may only save its workspace (`orStopping`).
 *
 * Errors: lease_lost (conflict).
 */
export async function requireLease(
  tx: Sql,
  executionId: number,
  attempt: number,
  options: { sessionUid?: string; orStopping?: boolean } = {},
): Promise<RunRef> {
  await tx.query("SELECT uid FROM runs WHERE uid = (SELECT run_uid FROM executions WHERE id = $1) FOR NO KEY UPDATE", [
    executionId,
  ]);
  const { rows } = await tx.query<RunRefRow>(
    `SELECT ${RUN_REF} FROM leases l JOIN runs r ON r.uid = l.run_uid
      WHERE l.execution_id = $1 AND l.attempt = $2 AND l.accepted AND ($3::uuid IS NULL OR l.session_uid = $3) AND (l.fence_at IS NULL OR $4)`,
    [executionId, attempt, options.sessionUid ?? null, options.orStopping ?? false],
  );
  if (!rows[0]) throw leaseLost();
  return toRunRef(rows[0]);
}

/**
 * Returns the run if the attempt's run token is still valid: the attempt owns an unexpired lease and was not asked to
 * stop.
 */
export async function findLiveLease(sql: Sql, lease: LeaseRef): Promise<RunRef | undefined> {
  const { rows } = await sql.query<RunRefRow>(
    `SELECT ${RUN_REF} FROM leases l JOIN runs r ON r.uid = l.run_uid
      WHERE l.execution_id = $1 AND l.attempt = $2 AND l.accepted AND l.fence_at IS NULL AND l.expires_at > clock_timestamp()`,
    [lease.executionId, lease.attempt],
  );
  return rows[0] && toRunRef(rows[0]);
}

export const leaseLost = (): DomainError =>
  new DomainError({
    kind: "conflict",
    reason: "lease_lost",
    message: "This attempt no longer has the lease of its execution. Stop it.",
  });
