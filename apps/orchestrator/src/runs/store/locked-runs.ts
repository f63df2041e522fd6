import type { Sql } from "@millwright/database";
import type { RunUid } from "@millwright/ids";
import { omitUndefined } from "@millwright/json";
import type { LockedExecution, LockedLease, LockedRun, RunOfExecution } from "../domain/run-change.ts";
import type { ExecutionState, RunState } from "../domain/run.ts";
import type { WaitPolicy } from "../domain/wait.ts";
import { LAST_EXPIRY } from "./last-expiry.ts";

type Row = {
  uid: string;
  version: number;
  root_run_uid: string;
  parent_run_uid: string | null;
  owner_type: "team" | "user";
  owner_uid: string;
  agent_uid: string | null;
  factory_uid: string | null;
  conversation_uid: string;
  depth: number;
  title: string;
  source: string;
  state: RunState;
  status_message: string | null;
  execution_location: "REMOTE" | "LOCAL";
  submitted_prompt: string | null;
  has_started: boolean;
  policy: WaitPolicy | null;
  awaited: string[] | null;
  id: number;
  seq: number;
  execution_state: ExecutionState;
  attempt: number;
  outcome: string | null;
  setup_losses: number;
  run_losses: number;
  was_started: boolean;
  lane_id: number;
  is_local: boolean;
  worker_host: string | null;
  traceparent: string | null;
  session_uid: string | null;
  dispatcher_uid: string | null;
  lease_attempt: number | null;
  accepted: boolean | null;
  is_expired: boolean | null;
  left_ms: number | null;
  lapsed_ms: number | null;
  is_window_expired: boolean | null;
  acked_client_seq: number | null;
  has_directives: boolean | null;
  has_followups: boolean | null;
};

/**
 * Returns the statement that reads locked runs. It runs after the locks are acquired, in a statement of its own, so
 * that it sees what earlier owners of the locks have committed.
 */
const lockedRuns = (which: string): string => `
  SELECT r.uid, r.version, r.root_run_uid, r.parent_run_uid, r.owner_type, r.owner_uid, r.agent_uid, r.factory_uid, r.conversation_uid, r.depth,
         r.title, r.source, r.state, r.status_message, r.execution_location, r.submitted_prompt, r.started_at IS NOT NULL AS has_started,
         w.policy, w.run_uids AS awaited,
         x.id, x.seq, x.state AS execution_state, x.attempt, x.outcome, x.setup_losses, x.run_losses, x.retained_attempts <> '{}' AS was_started, x.lane_id, x.is_local, x.worker_host, x.traceparent,
         l.session_uid, l.dispatcher_uid, l.attempt AS lease_attempt, l.accepted,
         coalesce(l.fence_at, l.expires_at) <= clock_timestamp() OR l.expires_at <= clock_timestamp() AS is_expired,
         (extract(epoch FROM l.expires_at - clock_timestamp()) * 1000)::bigint AS left_ms,
         greatest((extract(epoch FROM clock_timestamp() - ${LAST_EXPIRY}) * 1000)::bigint, 0) AS lapsed_ms,
         x.debug_until <= clock_timestamp() AS is_window_expired,
         s.last_client_seq AS acked_client_seq, undelivered.has_directives, undelivered.has_followups
    FROM runs r
    JOIN LATERAL (SELECT * FROM executions e WHERE e.run_uid = r.uid ORDER BY (e.id = ANY($1::bigint[])) DESC NULLS LAST, e.seq DESC LIMIT 1) x ON true
    LEFT JOIN leases l ON l.execution_id = x.id
    LEFT JOIN waits w ON w.run_uid = r.uid
    LEFT JOIN run_streams s ON s.run_uid = r.uid AND s.execution_id = x.id AND s.attempt = x.attempt
   CROSS JOIN LATERAL (
      SELECT bool_or(m.execution_id = x.id AND m.taken_as = 'directive') AS has_directives, bool_or(m.kind = 'followup') AS has_followups
        FROM messages m WHERE m.run_uid = r.uid AND m.delivered_at IS NULL AND NOT m.undeliverable) undelivered
   WHERE ${which} ORDER BY r.uid`;

const lock = (which: string): string => `SELECT r.uid FROM runs r WHERE ${which} ORDER BY r.uid FOR NO KEY UPDATE`;

/**
 * For a run and its parent. Passes scalars, because PostgreSQL plans statements with an array parameter on each
 * execution, which takes longer than executing them.
 */
const FEW = { lock: lock("r.uid IN ($1::uuid, $2::uuid)"), read: lockedRuns("r.uid IN ($2::uuid, $3::uuid)") };
const MANY = { lock: lock("r.uid = ANY($1::uuid[])"), read: lockedRuns("r.uid = ANY($2::uuid[])") };

/**
 * Locks runs in uid order. Returns them with their newest execution, or with the one of `executionIds` that belongs to
 * them. Runs that do not exist are left out.
 */
export async function lockRuns(
  tx: Sql,
  uids: readonly string[],
  executionIds: readonly number[] = [],
): Promise<LockedRun[]> {
  const [text, which] = uids.length <= 2 ? [FEW, [uids[0] ?? null, uids[1] ?? null]] : [MANY, [uids]];
  const [, { rows }] = await Promise.all([
    tx.query(text.lock, which),
    tx.query<Row>(text.read, [executionIds, ...which]),
  ]);
  return rows.map(toLockedRun);
}

/**
 * Returns the runs of executions and their parents, by execution id. They are immutable, so they may be read before
 * locking.
 */
export async function runsOfExecutions(
  sql: Sql,
  executionIds: readonly number[],
): Promise<ReadonlyMap<number, RunOfExecution>> {
  const { rows } = await sql.query<{ id: number; uid: RunUid; parent_run_uid: RunUid | null }>(
    `SELECT x.id, r.uid, r.parent_run_uid FROM executions x JOIN runs r ON r.uid = x.run_uid
      WHERE x.id = ANY (ARRAY(SELECT jsonb_array_elements_text($1::jsonb)::bigint))`,
    [JSON.stringify(executionIds)],
  );
  return new Map(rows.map((row) => [row.id, { uid: row.uid, parentRunUid: row.parent_run_uid ?? undefined }]));
}

/** Returns the run of one execution and its parent, which are immutable. */
export const runOfExecution = async (sql: Sql, executionId: number): Promise<RunOfExecution | undefined> =>
  (await runsOfExecutions(sql, [executionId])).get(executionId);

/**
 * Returns the active descendants of `uid` at any depth, including those below terminal runs, and descendants whose
 * failed setup a worker retains for debugging.
 */
export async function liveDescendants(sql: Sql, uid: string): Promise<RunUid[]> {
  const { rows } = await sql.query<{ uid: RunUid }>(
    `WITH RECURSIVE tree AS (
       SELECT c.uid, c.state FROM runs c WHERE c.parent_run_uid = $1
       UNION ALL SELECT c.uid, c.state FROM tree t JOIN runs c ON c.parent_run_uid = t.uid)
     SELECT uid FROM tree t WHERE state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS')
        OR (state = 'FAILED' AND EXISTS (SELECT 1 FROM executions x WHERE x.run_uid = t.uid AND x.state = 'DEBUG'))`,
    [uid],
  );
  return rows.map((row) => row.uid);
}

function toLockedRun(row: Row): LockedRun {
  return {
    uid: row.uid as RunUid,
    version: row.version,
    rootRunUid: row.root_run_uid as RunUid,
    parentRunUid: (row.parent_run_uid as RunUid | null) ?? undefined,
    owner: { type: row.owner_type, uid: row.owner_uid },
    agentUid: row.agent_uid ?? undefined,
    factoryUid: row.factory_uid ?? undefined,
    conversationUid: row.conversation_uid,
    depth: row.depth,
    title: row.title,
    source: row.source,
    state: row.state,
    statusMessage: row.status_message ?? undefined,
    executionLocation: row.execution_location,
    submittedPrompt: row.submitted_prompt ?? undefined,
    hasStarted: row.has_started,
    wait: row.policy ? { policy: row.policy, runUids: row.awaited ?? [] } : undefined,
    hasUndeliveredFollowups: row.has_followups === true,
    execution: {
      id: row.id,
      seq: row.seq,
      state: row.execution_state,
      attempt: row.attempt,
      outcome: row.outcome ?? undefined,
      setupLosses: row.setup_losses,
      runLosses: row.run_losses,
      wasStarted: row.was_started || undefined,
      laneId: row.lane_id,
      isLocal: row.is_local || undefined,
      workerHost: row.worker_host ?? undefined,
      traceparent: row.traceparent ?? undefined,
      ackedClientSeq: row.acked_client_seq ?? undefined,
      hasUndeliveredDirectives: row.has_directives === true,
      ...omitUndefined({ lease: leaseOf(row), staleWindow: staleWindow(row) }),
    },
  };
}

function leaseOf(row: Row): LockedLease | undefined {
  if (row.session_uid === null || row.lease_attempt === null) return undefined;
  return {
    sessionUid: row.session_uid,
    dispatcherUid: row.dispatcher_uid ?? undefined,
    attempt: row.lease_attempt,
    isAccepted: row.accepted === true,
    isExpired: row.is_expired === true,
    leftMs: row.left_ms ?? 0,
    lapsedMs: row.lapsed_ms ?? 0,
  };
}

function staleWindow({
  execution_state: state,
  is_expired: isLost,
  is_window_expired: isExpired,
}: Row): LockedExecution["staleWindow"] {
  if (state !== "DEBUG") return undefined;
  return isLost ? "worker_lost" : isExpired ? "window_expired" : undefined;
}
