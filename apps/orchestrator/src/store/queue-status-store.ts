import type { Sql } from "@millwright/database";
import type { QueueFacts } from "../domain/queue-reason.ts";
import type { RunState } from "../domain/run.ts";

type Row = {
  state: RunState; is_waiting: boolean; awaited: number; position: number | null; harness: string; image: string | null; worker_host: string | null;
  paused_scopes: string[]; full_scopes: string[]; is_stopping: boolean; workers: number; matching_workers: number; free_slots: number;
};

/** Caps and pauses that concern a lane `l`, as `used`. */
const CAPACITY_OF_LANE = `
  CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(c.scope) FILTER (WHERE c.in_use >= c.in_use_max), '{}') AS full_scopes,
           coalesce(array_agg(c.scope ORDER BY c.scope) FILTER (WHERE c.paused), '{}') AS paused_scopes
      FROM capacity c WHERE (c.scope, c.uid) IN ((l.owner_type, l.owner_uid), ('agent', l.agent_uid), ('factory', l.factory_uid))) used`;

/** Connected workers that could take a lane `l`, as `s`; seen within `presentMs`. What others run for one only it can count; their machines take nothing. */
const workersOfLane = (presentMs: string): string => `
  CROSS JOIN LATERAL (
    SELECT count(*) AS workers, count(*) FILTER (WHERE m.fits) AS matching_workers, coalesce(sum(m.free) FILTER (WHERE m.fits), 0)::bigint AS free_slots
      FROM (
        SELECT l.harness = ANY(ws.harness_types) AND (l.image IS NULL OR ws.images = '{}' OR l.image = ANY(ws.images))
                 AND (l.worker_host IS NULL OR (ws.team_uid IS NOT NULL AND ws.worker_host = l.worker_host)) AS fits,
               CASE WHEN ws.state <> 'READY' THEN 0 WHEN ws.sandbox = 'remote' THEN ws.free_slots
                    ELSE greatest(0, ws.slots - (SELECT count(*) FROM leases h WHERE h.session_uid = ws.uid)) END AS free
          FROM worker_sessions ws
         WHERE ws.backend <> 'machine' AND ws.last_seen_at > clock_timestamp() - ${presentMs} * interval '1 ms'
           AND (ws.team_uid IS NULL OR (l.owner_type = 'team' AND ws.team_uid = l.owner_uid))) m) s`;

/** Everything that decides whether and why a run waits, of one moment. A worker counts while it was seen within `presentMs`. */
export async function readQueueFacts(sql: Sql, runUid: string, presentMs: number): Promise<QueueFacts> {
  const { rows } = await sql.query<Row>(
    `SELECT r.state, w.run_uid IS NOT NULL AS is_waiting, l.harness, l.image, l.worker_host,
            (SELECT count(*) FROM runs c WHERE c.uid = ANY(w.run_uids) AND c.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS')) AS awaited,
            CASE WHEN x.state = 'QUEUED' THEN 1 + (
              SELECT count(*) FROM executions q WHERE q.lane_id = x.lane_id AND q.state = 'QUEUED' AND (q.depth > x.depth OR (q.depth = x.depth AND q.id < x.id)))
            END AS position,
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
    [runUid, presentMs],
  );
  const row = rows[0] as Row;
  return {
    ...factsOfLane(row),
    state: row.state,
    isWaiting: row.is_waiting,
    awaitedCount: row.awaited,
    ...(row.position === null ? {} : { position: row.position }),
    isStopping: row.is_stopping,
  };
}

type LaneRow = Pick<Row, "harness" | "image" | "worker_host" | "paused_scopes" | "full_scopes" | "workers" | "matching_workers" | "free_slots">;

const factsOfLane = (row: LaneRow) => ({
  harness: row.harness,
  ...(row.image === null ? {} : { image: row.image }),
  ...(row.worker_host === null ? {} : { workerHost: row.worker_host }),
  pausedScopes: row.paused_scopes,
  fullScopes: row.full_scopes,
  workers: row.workers,
  matchingWorkers: row.matching_workers,
  freeSlots: row.free_slots,
});

export type QueuedLane = { readonly queued: number; readonly oldestSeconds: number; readonly facts: QueueFacts };

/** Every lane in which executions are queued, with what its first one waits for. */
export async function readQueuedLanes(sql: Sql, presentMs: number): Promise<QueuedLane[]> {
  const { rows } = await sql.query<LaneRow & { queued: number; age: number }>(
    `SELECT l.harness, l.image, l.worker_host, q.queued, q.age, used.full_scopes, used.paused_scopes, s.workers, s.matching_workers, s.free_slots
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
    facts: { ...factsOfLane(row), state: "QUEUED", isWaiting: false, awaitedCount: 0, isStopping: false },
  }));
}
