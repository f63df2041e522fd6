import type { Database, Sql } from "@millwright/database";
import { appendEvents } from "@millwright/events";
import { newUid } from "@millwright/ids";
import type { RunUid } from "@millwright/ids";
import type { Owner } from "../../runs/domain/run.ts";
import type { Offer, WorkerSession } from "../../runs/domain/worker-session.ts";
import { offered } from "../../runs/events/run-events.ts";
import { BACKGROUND_DELAY_MS, PRIORITY_STEP_MS } from "../../catalog/domain/queue-settings.ts";
import { EXHAUSTED_BUDGETS_OF_RUN, hasExhaustedBudget, moveExhausted } from "../../budgets/store/budget-lanes.ts";
import { capacityKeys, type CapacityKey } from "../../runs/store/capacity-store.ts";

type Lane = {
  id: number;
  owner_type: Owner["type"];
  owner_uid: string;
  agent_uid: string | null;
  factory_uid: string | null;
  start: number;
  share: number;
  /** Whether the owner has an exhausted budget, so that some of its executions may have to wait. */
  is_limited: boolean;
};

/**
 * Selects the lane to serve next for a worker. Caps of the owner, the agent and the factory must leave free capacity.
 *
 * The owner with the least virtual time comes first. Within an owner, the lane with the deepest run comes first
 * (descendants before roots, so that a tree can finish), then the lane that has waited longest. Each level of priority
 * counts as PRIORITY_STEP_MS of waiting, so that no lane starves. Background work counts as queued BACKGROUND_DELAY_MS
 * later.
 *
 * An owner whose virtual time is behind the queue's clock starts at the clock, so an idle owner accumulates no credit.
 * Several owners may start at the clock, because claims in which an owner could not take part advance it too; the owner
 * with the smaller virtual time comes first then.
 *
 * Active lanes are found by skipping through the index of queued executions (recursive CTE), so empty lanes cost
 * nothing.
 */
const NEXT_LANE = `
  WITH RECURSIVE active (lane_id) AS (
    (SELECT lane_id FROM executions WHERE state = 'QUEUED' ORDER BY lane_id LIMIT 1)
    UNION ALL
    SELECT (SELECT e.lane_id FROM executions e WHERE e.state = 'QUEUED' AND e.lane_id > a.lane_id ORDER BY e.lane_id LIMIT 1)
      FROM active a WHERE a.lane_id IS NOT NULL),
  clock AS (SELECT coalesce(max(last_start), 0) AS at FROM capacity WHERE scope IN ('team', 'user')),
  eligible AS (
    SELECT l.*, greatest(own.virtual_time, clock.at) AS start, own.virtual_time, own.weight, head.depth, head.id AS head_id,
           head.queued_at - coalesce(agent.priority, 0) * interval '${PRIORITY_STEP_MS} ms' + l.is_background::integer * interval '${BACKGROUND_DELAY_MS} ms' AS waits_since
      FROM active a
      JOIN lanes l ON l.id = a.lane_id
      CROSS JOIN clock
      JOIN capacity own ON own.scope = l.owner_type AND own.uid = l.owner_uid AND own.in_use < own.in_use_max AND NOT own.paused
      LEFT JOIN capacity agent ON agent.scope = 'agent' AND agent.uid = l.agent_uid
      LEFT JOIN capacity factory ON factory.scope = 'factory' AND factory.uid = l.factory_uid
      JOIN LATERAL (
        SELECT e.id, e.depth, e.queued_at FROM executions e
         WHERE e.lane_id = l.id AND e.state = 'QUEUED'
           AND NOT EXISTS (SELECT 1 FROM executions s WHERE s.run_uid = e.run_uid AND s.state = 'STOPPING')
         ORDER BY e.depth DESC, e.id LIMIT 1) head ON true
     WHERE l.waits_for_budget IS NULL
       AND coalesce(agent.in_use < agent.in_use_max AND NOT agent.paused, true)
       AND coalesce(factory.in_use < factory.in_use_max AND NOT factory.paused, true)
       AND l.harness = ANY($1::text[]) AND (l.image IS NULL OR $5::text[] IS NULL OR l.image = ANY($5::text[]))
       AND (l.arch IS NULL OR $7::text IS NULL OR l.arch = $7)
       AND CASE WHEN $2::uuid IS NULL THEN l.worker_host IS NULL
                ELSE l.owner_type = 'team' AND l.owner_uid = $2 AND (l.worker_host IS NULL OR l.worker_host = $3) END
       AND l.id <> ALL($4::bigint[])
       AND (SELECT s.slots > (SELECT count(*) FROM leases h WHERE h.session_uid = s.uid) FROM worker_sessions s WHERE s.uid = $6)),
  next AS (
    SELECT *, weight / (SELECT sum(weight) FROM (SELECT DISTINCT owner_uid, weight FROM eligible) AS o) AS share
      FROM eligible ORDER BY start, virtual_time, owner_uid, depth DESC, waits_since, head_id LIMIT 1)
  SELECT *, ${hasExhaustedBudget("next.owner_uid")} AS is_limited FROM next`;

/** Returns whether any execution is queued, including those that no worker can claim now. */
export async function hasQueued(sql: Sql): Promise<boolean> {
  const { rows } = await sql.query<{ found: boolean }>(
    "SELECT EXISTS (SELECT 1 FROM executions WHERE state = 'QUEUED') AS found",
  );
  return rows[0]!.found;
}

/**
 * Offers queued executions to a worker: at most `freeSlots`, and never more than the slots it registered. Raises the
 * attempt of each execution, inserts the offers and takes the capacity they need, which never exceeds its maximum. Each
 * lane is claimed in a transaction of its own.
 */
export async function claim(
  database: Database,
  session: WorkerSession,
  freeSlots: number,
  offerTtlMs: number,
): Promise<Offer[]> {
  const offers: Offer[] = [];
  const skippedLanes: number[] = [];
  while (offers.length < freeSlots) {
    const taken = await claimFromOneLane(database, session, freeSlots - offers.length, offerTtlMs, skippedLanes);
    if (!taken) break;
    offers.push(...taken.offers);
    const isUnchanged = taken.offers.length === 0 && taken.movedCount === 0;
    if (isUnchanged) skippedLanes.push(taken.laneId); // other claims were faster, or other transactions lock its runs
  }
  return offers;
}

/**
 * Claims from one lane. Selects the lane outside the transaction: the selection locks nothing, and most polls find no
 * lane.
 */
async function claimFromOneLane(
  database: Database,
  session: WorkerSession,
  slots: number,
  offerTtlMs: number,
  skippedLanes: number[],
): Promise<{ laneId: number; offers: Offer[]; movedCount: number } | undefined> {
  const filter = [
    session.harnessTypes,
    session.teamUid ?? null,
    session.workerHost,
    skippedLanes,
    session.images.length > 0 ? session.images : null,
    session.uid,
    session.arch ?? null,
  ];
  const lane = (await database.sql.query<Lane>(NEXT_LANE, filter)).rows[0];
  if (!lane) return undefined;
  const keys = capacityKeys({
    owner: { type: lane.owner_type, uid: lane.owner_uid },
    agentUid: lane.agent_uid ?? undefined,
    factoryUid: lane.factory_uid ?? undefined,
  });
  return database.transaction(async (tx) => {
    const free = await lockFreeCapacity(tx, session, keys);
    // While several owners wait, no owner takes all slots of a worker at once.
    const share = Math.max(1, Math.floor(slots * lane.share));
    const movedCount = lane.is_limited ? await moveExhausted(tx, lane.id) : 0;
    return {
      laneId: lane.id,
      movedCount,
      offers: await offer(tx, session, lane, keys, Math.min(free, share, slots, OFFERS_MAX), offerTtlMs),
    };
  });
}

/**
 * Locks the worker's session, then the capacities. Returns the free capacity, which is valid until the transaction
 * ends.
 */
async function lockFreeCapacity(tx: Sql, session: WorkerSession, keys: readonly CapacityKey[]): Promise<number> {
  const { rows } = await tx.query<{ free: number }>(
    `WITH worker AS MATERIALIZED (SELECT uid FROM worker_sessions WHERE uid = $2 FOR NO KEY UPDATE)
     SELECT CASE WHEN c.paused THEN 0 ELSE c.in_use_max - c.in_use END AS free FROM worker, capacity c
       JOIN jsonb_to_recordset($1::jsonb) AS k (scope text, uid uuid) ON c.scope = k.scope AND c.uid = k.uid ORDER BY c.scope, c.uid FOR UPDATE OF c`,
    [JSON.stringify(keys), session.uid],
  );
  return rows.length < keys.length ? 0 : Math.max(0, Math.min(...rows.map(({ free }) => free)));
}

/**
 * Number of executions of a lane that are read as candidates for a number of offers. The surplus replaces candidates
 * whose run another transaction has locked.
 */
const CANDIDATES = [
  { offers: 4, candidates: 16 },
  { offers: 32, candidates: 64 },
  { offers: 200, candidates: 256 },
] as const;

/**
 * Returns the statement that offers the lane's first executions and takes the capacity they need.
 *
 * Runs whose row another transaction has locked are skipped, so a claim never waits for a run. `candidates` is a
 * constant of the text: with a parameter as limit, the planner assumes a tenth of the lane and scans whole tables for
 * a long lane. An execution whose workspace another worker retains is left to that worker until `preferred_until`, as
 * long as the worker is ready and has a free slot. If `isLimited` (the owner has exhausted budgets), runs that an
 * exhausted budget covers are not offered.
 */
const offerText = (candidates: number, isLimited: boolean): string => `
  WITH first AS MATERIALIZED (
    SELECT e.id, e.run_uid, e.depth FROM executions e
     WHERE e.lane_id = $1 AND e.state = 'QUEUED' AND NOT EXISTS (SELECT 1 FROM executions s WHERE s.run_uid = e.run_uid AND s.state = 'STOPPING')
       AND (e.preferred_session_uid IS NULL OR e.preferred_session_uid = $4 OR e.preferred_until <= clock_timestamp() OR NOT EXISTS (
         SELECT 1 FROM worker_sessions p WHERE p.uid = e.preferred_session_uid AND p.state = 'READY' AND p.slots > (SELECT count(*) FROM leases h WHERE h.session_uid = p.uid)))
     ORDER BY e.depth DESC, e.id LIMIT ${candidates}),
  queued AS MATERIALIZED (
    SELECT f.id, f.run_uid FROM first f JOIN runs r ON r.uid = f.run_uid
     WHERE r.state = 'QUEUED' ${isLimited ? `AND NOT EXISTS (${EXHAUSTED_BUDGETS_OF_RUN})` : ""} ORDER BY f.depth DESC, f.id
     LIMIT (SELECT greatest(0, least($2::bigint, s.slots - (SELECT count(*) FROM leases h WHERE h.session_uid = s.uid))) FROM worker_sessions s WHERE s.uid = $4)
       FOR NO KEY UPDATE OF r SKIP LOCKED),
  taken AS (
    UPDATE executions e SET state = 'OFFERED', attempt = e.attempt + 1, worker_host = $3 FROM queued q WHERE e.id = q.id AND e.state = 'QUEUED'
    RETURNING e.id, e.run_uid, e.attempt, e.traceparent),
  run AS (
    UPDATE runs r SET state = 'PENDING', version = r.version + 1, updated_at = clock_timestamp() FROM taken t WHERE r.uid = t.run_uid
    RETURNING r.uid, r.version, r.owner_type, r.owner_uid),
  lease AS (
    INSERT INTO leases (execution_id, attempt, run_uid, session_uid, accepted, expires_at)
    SELECT id, attempt, run_uid, $4, false, clock_timestamp() + $5 * interval '1 ms' FROM taken
    RETURNING execution_id, attempt, run_uid, expires_at),
  used AS (
    UPDATE capacity c SET in_use = c.in_use + n,
           virtual_time = CASE WHEN c.scope = $8 THEN $9 + n / c.weight ELSE c.virtual_time END,
           last_start = CASE WHEN c.scope = $8 THEN $9 ELSE c.last_start END
      FROM unnest($6::text[], $7::uuid[]) AS k (scope, uid), (SELECT count(*)::integer AS n FROM taken) AS taken_count
     WHERE c.scope = k.scope AND c.uid = k.uid AND n > 0)
  SELECT l.execution_id AS "executionId", l.attempt, l.expires_at AS "expiresAt", r.uid, r.version, r.owner_type, r.owner_uid, t.traceparent
    FROM lease l JOIN run r ON r.uid = l.run_uid JOIN taken t ON t.id = l.execution_id ORDER BY l.execution_id`;

const OFFER_TEXTS = CANDIDATES.flatMap(({ offers, candidates }) =>
  [false, true].map((isLimited) => ({ offers, isLimited, text: offerText(candidates, isLimited) })),
);
/**
 * Maximum number of offers from one lane in one transaction. A worker with more free slots claims from the lane again.
 */
const OFFERS_MAX = 200;

type Offered = Offer & {
  uid: RunUid;
  version: number;
  owner_type: Owner["type"];
  owner_uid: string;
  traceparent: string | null;
};

async function offer(
  tx: Sql,
  session: WorkerSession,
  lane: Lane,
  keys: readonly CapacityKey[],
  count: number,
  offerTtlMs: number,
): Promise<Offer[]> {
  const text = OFFER_TEXTS.find(({ offers, isLimited }) => count <= offers && isLimited === lane.is_limited)?.text;
  if (count === 0 || text === undefined) return [];
  const { rows } = await tx.query<Offered>(text, [
    ...[lane.id, count, session.workerHost, session.uid, offerTtlMs],
    // A team's own workers serve only that team, so their claims do not raise its virtual time.
    ...[
      keys.map(({ scope }) => scope),
      keys.map(({ uid }) => uid),
      session.teamUid ? null : lane.owner_type,
      lane.start,
    ],
  ]);
  const context = { actor: { type: "worker", uid: session.workerHost }, requestId: newUid() };
  await appendEvents(
    tx,
    rows.map((run) =>
      offered({ uid: run.uid, owner: { type: run.owner_type, uid: run.owner_uid } }, run.version, {
        ...context,
        traceparent: run.traceparent ?? undefined,
      }),
    ),
  );
  return rows.map(({ executionId, attempt, expiresAt }) => ({ executionId, attempt, expiresAt }));
}
