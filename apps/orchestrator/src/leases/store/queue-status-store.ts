import type { RunSql } from "../../runs/store/run-sql.ts";
import type { Sql } from "@millwright/database";
import type { QueueFacts } from "../domain/queue-reason.ts";
import { BACKGROUND_DELAY_MS, PRIORITY_STEP_MS } from "../../catalog/domain/queue-settings.ts";
import type { RunState } from "../../runs/domain/run.ts";

type Row = {
  state: RunState;
  is_waiting: boolean;
  awaited: number;
  position: number | null;
  harness: string;
  image: string | null;
  arch: string | null;
  worker_host: string | null;
  paused_scopes: string[];
  full_scopes: string[];
  is_stopping: boolean;
  workers: number;
  matching_workers: number;
  free_slots: number;
};

/** Full and paused capacity scopes that apply to a lane `l`, as `used`. */
const CAPACITY_OF_LANE = `
  CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(c.scope) FILTER (WHERE c.in_use >= c.in_use_max), '{}') AS full_scopes,
           coalesce(array_agg(c.scope ORDER BY c.scope) FILTER (WHERE c.paused), '{}') AS paused_scopes
      FROM capacity c WHERE (c.scope, c.uid) IN ((l.owner_type, l.owner_uid), ('agent', l.agent_uid), ('factory', l.factory_uid))) used`;

/**
 * Returns the condition that a connected worker `ws`, seen within `presentMs`, may serve the owner of a lane. Machines
 * of a dispatcher do not claim executions themselves.
 */
const mayServe = (lane: string, presentMs: string): string => `(
  ws.backend <> 'machine' AND ws.last_seen_at > clock_timestamp() - ${presentMs} * interval '1 ms'
  AND (ws.team_uid IS NULL OR (${lane}.owner_type = 'team' AND ws.team_uid = ${lane}.owner_uid)))`;

/** Returns the condition that a worker `ws` offers what the executions of a lane require. */
const fits = (lane: string): string => `(
  ${lane}.harness = ANY(ws.harness_types)
  AND (${lane}.image IS NULL OR ws.images = '{}' OR ${lane}.image = ANY(ws.images))
  AND (${lane}.arch IS NULL OR ws.arch IN ('', ${lane}.arch))
  AND (${lane}.worker_host IS NULL OR (ws.team_uid IS NOT NULL AND ws.worker_host = ${lane}.worker_host)))`;

/**
 * Counts connected workers that may serve a lane `l`, as `s`. For a dispatcher, uses the free slots that it reports,
 * because only the dispatcher can count those of its machines.
 */
const workersOfLane = (presentMs: string): string => `
  CROSS JOIN LATERAL (
    SELECT count(*) AS workers, count(*) FILTER (WHERE m.fits) AS matching_workers, coalesce(sum(m.free) FILTER (WHERE m.fits), 0)::bigint AS free_slots
      FROM (
        SELECT ${fits("l")} AS fits,
               CASE WHEN ws.state <> 'READY' THEN 0 WHEN ws.sandbox = 'remote' THEN ws.free_slots
                    ELSE greatest(0, ws.slots - (SELECT count(*) FROM leases h WHERE h.session_uid = ws.uid)) END AS free
          FROM worker_sessions ws
         WHERE ${mayServe("l", presentMs)}) m) s`;

/**
 * Returns the condition that executions of a lane `o` compete with those of a lane `l` for their owner's share of the
 * workers: `o` is `l` itself, or a lane of the same owner whose caps leave free capacity and that some worker can serve
 * as well as `l`.
 */
const competes = (presentMs: string): string => `
  o.owner_type = l.owner_type AND o.owner_uid = l.owner_uid AND (o.id = l.id OR (
    o.waits_for_budget IS NULL
    AND NOT EXISTS (SELECT 1 FROM capacity c
                 WHERE (c.in_use >= c.in_use_max OR c.paused) AND (c.scope, c.uid) IN (('agent', o.agent_uid), ('factory', o.factory_uid)))
    AND EXISTS (SELECT 1 FROM worker_sessions ws WHERE ${mayServe("l", presentMs)} AND ${fits("l")} AND ${fits("o")})))`;

/**
 * Returns since when an execution of a lane waits, adjusted by priority and background delay, as the claim orders
 * executions (queue-store.ts).
 */
const waitsSince = (execution: string, lane: string): string => `
  ${execution}.queued_at - coalesce((SELECT c.priority FROM capacity c WHERE c.scope = 'agent' AND c.uid = ${lane}.agent_uid), 0) * interval '${PRIORITY_STEP_MS} ms'
    + ${lane}.is_background::integer * interval '${BACKGROUND_DELAY_MS} ms'`;

/**
 * Counts executions of the owner of `x` (in lane `l`) that are served before it: deeper ones first, then those that
 * have waited longer.
 */
const servedBefore = (presentMs: string): string => `
  SELECT coalesce(sum(n), 0)::integer
    FROM lanes o
    CROSS JOIN LATERAL (SELECT ${waitsSince("x", "l")} AS x_since) self
    CROSS JOIN LATERAL (
      SELECT count(*) AS n FROM executions q
       WHERE q.lane_id = o.id AND q.state = 'QUEUED'
         AND (q.depth > x.depth OR (q.depth = x.depth AND CASE
               WHEN o.id = l.id THEN q.id < x.id
               ELSE (${waitsSince("q", "o")}, q.id) < (self.x_since, x.id) END))) before
   WHERE ${competes(presentMs)}`;

/**
 * Returns everything that determines whether and why a run waits, as of one moment. A worker counts if it was seen
 * within the lifetime of a lease.
 */
export async function readQueueFacts(sql: RunSql, runUid: string): Promise<QueueFacts> {
  const { rows } = await sql.query<Row>(
    `SELECT r.state, w.run_uid IS NOT NULL AS is_waiting, l.harness, l.image, l.arch, l.worker_host,
            (SELECT count(*) FROM runs c WHERE c.uid = ANY(w.run_uids) AND c.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS')) AS awaited,
            CASE WHEN x.state = 'QUEUED' THEN 1 + (${servedBefore("$2")}) END AS position,
            used.full_scopes, used.paused_scopes,
            EXISTS (SELECT 1 FROM executions s WHERE s.run_uid = r.uid AND s.state = 'STOPPING') AS is_stopping,
            s.workers, s.matching_workers, s.free_slots
       FROM runs r
       JOIN LATERAL (SELECT * FROM executions e WHERE e.run_uid = r.uid ORDER BY e.seq DESC LIMIT 1) x ON true
       JOIN lanes l ON l.id = x.lane_id
       LEFT JOIN waits w ON w.run_uid = r.uid
       ${CAPACITY_OF_LANE}
       ${workersOfLane("$2")}
      WHERE r.uid = $1`,
    [runUid, sql.timings.leaseTtlMs],
  );
  const row = rows[0] as Row;
  return {
    ...factsOfLane(row),
    state: row.state,
    isWaiting: row.is_waiting,
    awaitedCount: row.awaited,
    position: row.position ?? undefined,
    isStopping: row.is_stopping,
  };
}

type LaneRow = Pick<
  Row,
  | "harness"
  | "image"
  | "arch"
  | "worker_host"
  | "paused_scopes"
  | "full_scopes"
  | "workers"
  | "matching_workers"
  | "free_slots"
>;

const factsOfLane = (row: LaneRow) => ({
  harness: row.harness,
  image: row.image ?? undefined,
  arch: row.arch ?? undefined,
  workerHost: row.worker_host ?? undefined,
  pausedScopes: row.paused_scopes,
  fullScopes: row.full_scopes,
  workers: row.workers,
  matchingWorkers: row.matching_workers,
  freeSlots: row.free_slots,
});

export type QueuedLane = { readonly queued: number; readonly oldestSeconds: number; readonly facts: QueueFacts };

/** Returns every lane that has queued executions, with the reason why its first execution waits. */
export async function readQueuedLanes(sql: Sql, presentMs: number): Promise<QueuedLane[]> {
  const { rows } = await sql.query<LaneRow & { waits_for_budget: string | null; queued: number; age: number }>(
    `SELECT l.harness, l.image, l.arch, l.worker_host, l.waits_for_budget, q.queued, q.age, used.full_scopes, used.paused_scopes, s.workers, s.matching_workers, s.free_slots
       FROM (SELECT lane_id, count(*) AS queued, extract(epoch FROM clock_timestamp() - min(queued_at))::float8 AS age
               FROM executions WHERE state = 'QUEUED' GROUP BY lane_id) q
       JOIN lanes l ON l.id = q.lane_id
       ${CAPACITY_OF_LANE}
       ${workersOfLane("$1")}`,
    [presentMs],
  );
  return rows.map((row) => ({
    queued: row.queued,
    oldestSeconds: row.age,
    facts: {
      ...factsOfLane(row),
      exhaustedBudget: row.waits_for_budget === null ? undefined : `The budget ${row.waits_for_budget} is exhausted.`,
      state: "QUEUED",
      isWaiting: false,
      awaitedCount: 0,
      isStopping: false,
    },
  }));
}
