import type { Sql } from "@millwright/database";
import type { LimitedRun } from "../domain/cost-limit.ts";
import { SCOPES_OF_ROOT } from "./budget-store.ts";

/**
 * Stores costs of runs that have a cost limit. Micro-dollars are passed as text, because int8 exceeds the safe integers
 * of a number.
 */
export const costStore = {
  /** Serializes cost decisions in one tree until the transaction ends. */
  async lockTree(tx: Sql, runUid: string): Promise<void> {
    await tx.query(
      "SELECT pg_advisory_xact_lock(hashtextextended('cost ' || root_run_uid::text, 0)) FROM runs WHERE uid = $1",
      [runUid],
    );
  },

  /**
   * Returns the run and its ancestors that have a limit. Leaves out reservations of `exceptExecution` and of attempts
   * that have ended.
   */
  async limitsOf(tx: Sql, runUid: string, exceptExecution: number): Promise<LimitedRun[]> {
    const { rows } = await tx.query<{ uid: string; limit_micros: string; spent: string; reserved: string }>(
      `WITH RECURSIVE above AS (
              SELECT uid, parent_run_uid, frozen->>'cost_limit_micros' AS limit_micros FROM runs WHERE uid = $1
              UNION ALL
              SELECT r.uid, r.parent_run_uid, r.frozen->>'cost_limit_micros' FROM above a JOIN runs r ON r.uid = a.parent_run_uid),
            below AS (
              SELECT uid AS top, uid FROM above WHERE limit_micros IS NOT NULL
              UNION ALL
              SELECT b.top, r.uid FROM below b JOIN runs r ON r.parent_run_uid = b.uid)
       SELECT a.uid, a.limit_micros,
              (SELECT coalesce(sum(coalesce(u.limited_micros, u.cost_micros)), 0)::text FROM below b JOIN usage_rows u ON u.run_uid = b.uid WHERE b.top = a.uid) AS spent,
              (SELECT coalesce(sum(c.micros), 0)::text FROM below b JOIN cost_reservations c ON c.run_uid = b.uid
                 JOIN executions e ON e.id = c.execution_id AND e.attempt = c.attempt AND e.state IN ('CLAIMED', 'RUNNING')
                WHERE b.top = a.uid AND c.execution_id <> $2) AS reserved
         FROM above a WHERE a.limit_micros IS NOT NULL`,
      [runUid, exceptExecution],
    );
    return rows.map((row) => ({
      runUid: row.uid,
      limitMicros: BigInt(row.limit_micros),
      spentMicros: BigInt(row.spent),
      reservedMicros: BigInt(row.reserved),
    }));
  },

  async reserve(
    tx: Sql,
    { executionId, attempt, runUid, micros }: { executionId: number; attempt: number; runUid: string; micros: bigint },
  ): Promise<void> {
    await tx.query(
      `INSERT INTO cost_reservations (execution_id, run_uid, attempt, micros, team_uid, scopes)
       SELECT $1, $2, $3, $4::bigint, t.team_uid, CASE WHEN t.team_uid IS NULL THEN '{}' ELSE t.scopes END
         FROM runs r
         JOIN runs root ON root.uid = r.root_run_uid
        CROSS JOIN LATERAL (SELECT CASE WHEN root.owner_type = 'team' THEN root.owner_uid END AS team_uid, ${SCOPES_OF_ROOT} AS scopes) t
        WHERE r.uid = $2
       ON CONFLICT (execution_id) DO UPDATE SET attempt = excluded.attempt, micros = excluded.micros, reserved_at = CURRENT_TIMESTAMP`,
      [executionId, runUid, attempt, String(micros)],
    );
  },

  /** Releases what an execution has reserved. */
  async release(tx: Sql, executionId: number): Promise<void> {
    await tx.query("DELETE FROM cost_reservations WHERE execution_id = $1", [executionId]);
  },

  /**
   * Releases what an execution has reserved, and returns it. Undefined, and nothing is released, if nothing was
   * reserved or the usage of the call is stored. The run must be locked.
   */
  async releaseForCall(
    tx: Sql,
    { executionId, runUid, callId }: { executionId: number; runUid: string; callId: string },
  ): Promise<bigint | undefined> {
    const { rows } = await tx.query<{ micros: string }>(
      `DELETE FROM cost_reservations
        WHERE execution_id = $1
          AND NOT EXISTS (SELECT FROM usage_rows WHERE run_uid = $2 AND call_id = $3)
       RETURNING micros::text AS micros`,
      [executionId, runUid, callId],
    );
    return rows[0] && BigInt(rows[0].micros);
  },
};

export type CostStore = typeof costStore;
