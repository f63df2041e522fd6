import { sendTo } from "@millwright/database";
import { isTerminal } from "../domain/run.ts";
import { endsAttempt, isWaitingForMachine, type RunChange } from "../domain/run-change.ts";
import { eventRows } from "./run-events-store.ts";
import type { RunSql } from "./run-sql.ts";

/**
 * Updates the rows of changed runs with one statement: runs, executions, the compute intervals of ended attempts,
 * leases, and event streams with their new events. The runs must be locked and distinct. All parts see the rows as they
 * were before the statement. Does not wait for the result; a missing row of a stream fails the transaction.
 */
export async function saveRows(tx: RunSql, changes: readonly RunChange[]): Promise<void> {
  const events = changes.reduce((count, change) => count + change.events.length, 0);
  const { leaseTtlMs, stopGraceMs } = tx.timings;
  await sendTo(tx, SAVE, [JSON.stringify(changes.map(rowOf)), leaseTtlMs, stopGraceMs], events);
}

const rowOf = (change: RunChange) => ({
  uid: change.run.uid,
  execution_id: change.run.execution.id,
  attempt: change.run.execution.attempt,
  lease: change.next.lease,
  ...(changesRun(change) && runOf(change)),
  ...(changesExecution(change) && executionOf(change)),
  ends_attempt: endsAttempt(change),
  is_waiting_for_machine: isWaitingForMachine(change),
  lapsed_ms: change.lapsedMs ?? 0,
  event_count: change.events.length,
  events: eventRows(change.events),
});

/** Whether a change updates the run's row. A change that only informs the run (a child has ended) does not. */
const changesRun = ({ run, next, sessionUid, submittedPrompt }: RunChange): boolean =>
  next.run !== run.state ||
  next.lease !== "unchanged" ||
  next.hasNextExecution ||
  next.status !== undefined ||
  sessionUid !== undefined ||
  submittedPrompt !== undefined;

function runOf({ run, next, sessionUid, submittedPrompt }: RunChange) {
  return {
    changes_run: true,
    run_state: next.run,
    changes_status: next.status !== undefined,
    status_message: next.status?.message,
    error_code: next.status?.errorCode,
    error_retryable: next.status?.retryable,
    starts: run.state === "CLAIMED" && next.run === "INPROGRESS",
    ends: isTerminal(next.run) && next.run !== run.state,
    is_terminal: isTerminal(next.run),
    session_uid: sessionUid,
    submitted_prompt: submittedPrompt,
    has_next_execution: next.hasNextExecution,
    // A debug window does not count as run time.
    ends_work: run.execution.state !== "DEBUG" && (next.lease === "release" || next.execution === "DEBUG"),
  };
}

const changesExecution = ({ run, next }: RunChange): boolean =>
  next.execution !== run.execution.state || next.lease !== "unchanged";

function executionOf({ run, next, snapshotKey, isWorkspaceUnchanged, debugWindowMs, parkedMs }: RunChange) {
  return {
    changes_execution: true,
    execution_state: next.execution,
    outcome: next.outcome,
    setup_losses: next.setupLosses,
    run_losses: next.runLosses,
    // The events of an interrupted attempt remain valid: the next attempt continues from them.
    is_interrupted: run.execution.state === "RUNNING" && next.execution === "QUEUED",
    snapshot_key: snapshotKey,
    workspace_unchanged: isWorkspaceUnchanged ?? false,
    debug_window_ms: debugWindowMs ?? 0,
    parked_ms: parkedMs || undefined,
    parked_session_uid: run.execution.lease?.sessionUid,
  };
}

/** Returns a condition that limits a table to changed rows by key, so that the plan does not depend on estimates. */
const isChanged = (column: string, key: "uid" | "execution_id"): string =>
  `${column} = ANY (ARRAY(SELECT ${key} FROM change))`;

/**
 * One statement for all changes: statements per change took most of the time of a completion. Leases are locked in the
 * order in which heartbeats lock them. A worker also reports 0 vCPUs if the runner requests at least as many as the
 * machine has; the requested shape counts then.
 */
const SAVE = `
WITH change AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset($1::jsonb) AS c (
    uid uuid, execution_id bigint, attempt integer, lease text,
    changes_run boolean, run_state text, changes_status boolean, status_message text, error_code text, error_retryable boolean,
    starts boolean, ends boolean, is_terminal boolean, session_uid text, submitted_prompt text, has_next_execution boolean, ends_work boolean,
    changes_execution boolean, execution_state text, outcome text, setup_losses integer, run_losses integer, is_interrupted boolean,
    snapshot_key text, workspace_unchanged boolean, debug_window_ms float8, parked_ms float8, parked_session_uid uuid,
    ends_attempt boolean, is_waiting_for_machine boolean, lapsed_ms float8, event_count integer, events jsonb)),
run AS (
  UPDATE runs r
     SET state = c.run_state, version = r.version + 1, updated_at = clock_timestamp(),
         status_message = CASE WHEN c.changes_status THEN c.status_message ELSE r.status_message END,
         error_code = CASE WHEN c.changes_status THEN c.error_code ELSE r.error_code END,
         error_retryable = CASE WHEN c.changes_status THEN c.error_retryable ELSE r.error_retryable END,
         started_at = CASE WHEN c.starts THEN coalesce(r.started_at, clock_timestamp()) ELSE r.started_at END,
         finished_at = CASE WHEN c.ends THEN clock_timestamp() WHEN c.is_terminal THEN r.finished_at END,
         session_uid = coalesce(c.session_uid, r.session_uid),
         submitted_prompt = coalesce(c.submitted_prompt, r.submitted_prompt),
         execution_count = r.execution_count + CASE WHEN c.has_next_execution THEN 1 ELSE 0 END,
         execution_location = CASE WHEN c.has_next_execution THEN 'REMOTE' ELSE r.execution_location END,
         run_time_ms = r.run_time_ms + CASE WHEN c.ends_work THEN coalesce((
           SELECT greatest(extract(epoch FROM clock_timestamp() - x.claimed_at) * 1000 - c.lapsed_ms, 0)::bigint FROM executions x WHERE x.id = c.execution_id), 0) ELSE 0 END
    FROM change c WHERE ${isChanged("r.uid", "uid")} AND r.uid = c.uid AND c.changes_run),
compute_interval AS (
  INSERT INTO compute_intervals (run_uid, execution_id, attempt, started_at, ended_at, vcpus, memory_gb)
  SELECT x.run_uid, x.id, x.attempt, CASE WHEN c.is_waiting_for_machine THEN ending.at ELSE x.claimed_at END, ending.at,
         coalesce(nullif(x.sandbox_vcpus, 0), (r.frozen #>> '{instance_shape,vcpus}')::float8, 0),
         coalesce(nullif(x.sandbox_memory_gb, 0), (r.frozen #>> '{instance_shape,memory_gb}')::float8, 0)
    FROM change c JOIN executions x ON x.id = c.execution_id JOIN runs r ON r.uid = c.uid
   CROSS JOIN LATERAL (SELECT greatest(x.claimed_at, clock_timestamp() - c.lapsed_ms * interval '1 ms') AS at OFFSET 0) ending
   WHERE ${isChanged("x.id", "execution_id")} AND ${isChanged("r.uid", "uid")} AND c.ends_attempt
  ON CONFLICT DO NOTHING),
execution AS (
  UPDATE executions x
     SET state = c.execution_state, outcome = c.outcome, setup_losses = c.setup_losses, run_losses = c.run_losses,
         accepted_attempt = CASE WHEN c.execution_state = 'CLAIMED' THEN x.attempt ELSE x.accepted_attempt END,
         claimed_at = CASE c.execution_state WHEN 'CLAIMED' THEN clock_timestamp() WHEN 'QUEUED' THEN NULL ELSE x.claimed_at END,
         started_at = CASE c.execution_state WHEN 'RUNNING' THEN clock_timestamp() WHEN 'QUEUED' THEN NULL ELSE x.started_at END,
         sandbox_vcpus = CASE WHEN c.execution_state <> 'QUEUED' THEN x.sandbox_vcpus END,
         sandbox_memory_gb = CASE WHEN c.execution_state <> 'QUEUED' THEN x.sandbox_memory_gb END,
         stall_warned_at = NULL,
         ended_at = CASE WHEN c.execution_state = 'ENDED' THEN clock_timestamp() END,
         sandbox_running = x.sandbox_running AND c.lease <> 'release',
         snapshot_key = coalesce(c.snapshot_key, x.snapshot_key),
         workspace_unchanged = c.workspace_unchanged,
         parked_session_uid = CASE WHEN c.parked_ms IS NOT NULL THEN c.parked_session_uid END,
         parked_until = clock_timestamp() + c.parked_ms * interval '1 ms',
         debug_since = CASE WHEN c.execution_state = 'DEBUG' THEN clock_timestamp() END,
         debug_until = CASE WHEN c.execution_state = 'DEBUG' THEN clock_timestamp() + c.debug_window_ms * interval '1 ms' END,
         retained_attempts = CASE WHEN c.is_interrupted THEN array_append(x.retained_attempts, x.attempt) ELSE x.retained_attempts END
    FROM change c WHERE ${isChanged("x.id", "execution_id")} AND x.id = c.execution_id AND c.changes_execution),
locked AS MATERIALIZED (
  SELECT l.execution_id FROM leases l
   WHERE l.execution_id = ANY (ARRAY(SELECT execution_id FROM change WHERE lease <> 'unchanged')) ORDER BY l.execution_id FOR UPDATE),
updated_lease AS (
  UPDATE leases l
     SET accepted = l.accepted OR c.lease = 'accept',
         expires_at = CASE WHEN c.lease = 'accept' THEN clock_timestamp() + $2 * interval '1 ms' ELSE l.expires_at END,
         fence_at = CASE WHEN c.lease = 'stop' THEN clock_timestamp() + $3 * interval '1 ms' ELSE l.fence_at END
    FROM locked k JOIN change c ON c.execution_id = k.execution_id AND c.lease IN ('accept', 'stop')
   WHERE l.execution_id = k.execution_id),
deleted_lease AS (
  DELETE FROM leases l USING locked k JOIN change c ON c.execution_id = k.execution_id AND c.lease = 'release'
   WHERE l.execution_id = k.execution_id),
stream AS (
  UPDATE run_streams s
     SET last_seq = s.last_seq + c.event_count,
         execution_id = CASE c.lease WHEN 'accept' THEN c.execution_id WHEN 'release' THEN nullif(s.execution_id, c.execution_id) ELSE s.execution_id END,
         attempt = CASE WHEN c.lease = 'accept' THEN c.attempt WHEN c.lease <> 'release' OR s.execution_id <> c.execution_id THEN s.attempt END,
         last_client_seq = CASE WHEN c.lease = 'accept' THEN 0 ELSE s.last_client_seq END,
         last_worker_at = CASE WHEN c.lease <> 'accept' THEN s.last_worker_at END
    FROM change c WHERE ${isChanged("s.run_uid", "uid")} AND s.run_uid = c.uid AND (c.event_count > 0 OR c.lease IN ('accept', 'release'))
  RETURNING s.run_uid, s.last_seq - c.event_count AS last_seq_before, c.events)
INSERT INTO stream.run_events (run_uid, seq, uid, kind, occurred_at, execution_id, payload)
SELECT s.run_uid, s.last_seq_before + given.n, (given.event->>'uid')::uuid, given.event->>'kind', clock_timestamp(),
       (given.event->>'execution_id')::bigint, given.event->'payload'
  FROM stream s CROSS JOIN LATERAL jsonb_array_elements(s.events) WITH ORDINALITY AS given (event, n)`;
