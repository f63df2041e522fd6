import type { RunSql } from "../../runs/store/run-sql.ts";
import type { Database, Sql } from "@millwright/database";
import type { ExceededLimit } from "../domain/execution-limits.ts";
import type { ReaperTick } from "../domain/reaper-tick.ts";
import { LAST_EXPIRY } from "../../runs/store/last-expiry.ts";
import type { Timings } from "../../runs/domain/timings.ts";
import type { LeaseRef } from "../../runs/domain/worker-session.ts";

const REAPER_LOCK = 7_021_001;
/**
 * Maximum number of leases per tick. They are processed within a fraction of `reaperPauseMs`, because a longer time
 * between two ticks counts as a pause of the reaper.
 */
export const REAPER_BATCH = 100;

/**
 * Checks the first leases after an execution for expiry, by the database's clock. After a pause in which no replica ran
 * a tick, workers may have been unable to renew their leases: then all leases are extended once and none is overdue.
 */
export const tickReaper = (database: Database, timings: Timings, afterExecutionId: number): Promise<ReaperTick> =>
  database.transaction(async (tx) => {
    const lock = await tx.query<{ is_locked: boolean }>("SELECT pg_try_advisory_xact_lock($1) AS is_locked", [
      REAPER_LOCK,
    ]);
    if (!lock.rows[0]?.is_locked) return { outcome: "skipped", overdue: [] };
    const paused = await tx.query(
      "SELECT 1 FROM reaper_ticks WHERE last_tick < clock_timestamp() - $1 * interval '1 ms'",
      [timings.reaperPauseMs],
    );
    if (paused.rowCount > 0) await extendAll(tx, timings);
    const overdue = paused.rowCount > 0 ? [] : await findOverdue(tx, afterExecutionId);
    await tx.query(
      "UPDATE reaper_ticks SET last_tick = clock_timestamp(), resumed_at = CASE WHEN $1 THEN clock_timestamp() ELSE resumed_at END",
      [paused.rowCount > 0],
    );
    return { outcome: paused.rowCount > 0 ? "extended" : "checked", overdue };
  });

const extendAll = (tx: Sql, timings: Timings): Promise<unknown> =>
  tx.query(
    `WITH locked AS (
       SELECT l.execution_id, ${LAST_EXPIRY} AS extended_from,
              greatest(l.expires_at, clock_timestamp() + CASE WHEN l.accepted THEN $1::float8 ELSE $2::float8 END * interval '1 ms') AS extended_to
         FROM leases l ORDER BY l.execution_id FOR UPDATE)
     UPDATE leases l SET
            expires_at = locked.extended_to, extended_to = locked.extended_to, extended_from = locked.extended_from,
            fence_at = CASE WHEN l.fence_at IS NOT NULL THEN greatest(l.fence_at, clock_timestamp() + $3 * interval '1 ms') END
       FROM locked WHERE l.execution_id = locked.execution_id`,
    [timings.leaseTtlMs, timings.offerTtlMs, timings.stopGraceMs],
  );

async function findOverdue(tx: Sql, afterExecutionId: number): Promise<LeaseRef[]> {
  const { rows } = await tx.query<LeaseRef>(
    `SELECT execution_id AS "executionId", attempt FROM leases
      WHERE execution_id > $1 AND (expires_at <= clock_timestamp() OR fence_at <= clock_timestamp()) ORDER BY execution_id LIMIT ${REAPER_BATCH}`,
    [afterExecutionId],
  );
  return rows;
}

/**
 * Returns executions after `afterExecutionId` that exceeded a time limit, and running ones whose silence is due for a
 * warning (once per silence). Nothing before the end of the reaper's last pause counts: workers could not report then,
 * and the lease of a lost one expires first.
 */
export async function findExceededLimits(sql: RunSql, afterExecutionId: number): Promise<ExceededLimit[]> {
  const { timings } = sql;
  // The wait for a machine does not count as setup: the dispatcher itself fails executions whose machine does not start.
  const graceMs = timings.leaseTtlMs; // the worker enforces the same limits, with more precise errors
  const { rows } = await sql.query<ExceededLimit>(
    `SELECT * FROM (
       SELECT l.execution_id AS "executionId", l.attempt, idle.ms AS "idleMs", CASE
                WHEN x.state = 'CLAIMED' AND l.dispatcher_uid IS DISTINCT FROM l.session_uid AND claimed.at < clock_timestamp() - $1 * interval '1 ms' THEN 'setup'
                WHEN x.state = 'DEBUG' THEN CASE WHEN x.debug_until + (x.debug_until - x.debug_since) < clock_timestamp() - $6 * interval '1 ms' THEN 'debug' END
                WHEN claimed.at < clock_timestamp() - $2 * interval '1 ms' THEN 'execution'
                WHEN x.state = 'RUNNING' AND l.phase <> 'IDLE' AND idle.ms > $3 THEN 'stall'
                WHEN x.state = 'RUNNING' AND l.phase <> 'IDLE' AND idle.ms > $4
                     AND coalesce(x.stall_warned_at < s.last_worker_at, x.stall_warned_at IS NULL) THEN 'stall_warning' END AS "limit"
         FROM leases l JOIN executions x ON x.id = l.execution_id JOIN run_streams s ON s.run_uid = l.run_uid CROSS JOIN reaper_ticks t
         CROSS JOIN LATERAL (SELECT greatest(x.claimed_at, t.resumed_at) AS at) claimed
         CROSS JOIN LATERAL (SELECT (extract(epoch FROM clock_timestamp() - greatest(x.started_at, s.last_worker_at, t.resumed_at)) * 1000)::bigint AS ms) idle
        WHERE l.execution_id > $5 AND l.accepted AND l.fence_at IS NULL) found
      WHERE "limit" IS NOT NULL ORDER BY "executionId" LIMIT ${REAPER_BATCH}`,
    [
      timings.setupTimeoutMs + graceMs,
      timings.executionTimeoutMs + graceMs,
      timings.stallTimeoutMs,
      timings.stallWarningMs,
      afterExecutionId,
      graceMs,
    ],
  );
  return rows;
}
