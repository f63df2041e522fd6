import type { RunSql } from "./run-sql.ts";
import { sendTo, type Sql } from "@millwright/database";
import { appendEvents } from "@millwright/events";
import { topics } from "../../storage/wakeups.ts";
import { traceOfRun, type ChangeContext, type RunChange } from "../domain/run-change.ts";
import { isTerminal } from "../domain/run.ts";
import { attemptEnded, stateChanged, runFinished } from "../events/run-events.ts";
import { finishedAnnouncement } from "./finished-announcement.ts";
import { releaseCapacity } from "./capacity-store.ts";
import { endsAttempt, recordComputeInterval } from "./compute-interval-store.ts";
import { addDirective } from "./directive-store.ts";
import { currentTraceparent } from "../../storage/store/current-traceparent.ts";
import { enqueueTranscript } from "../../storage/store/blob-work.ts";
import { appendRunEvents } from "./run-events-store.ts";

/**
 * Saves the changes of locked runs: rows, capacity, leases, event streams, then the lifecycle events. All capacity is
 * released before any leaf row is changed (see the lock order in 0001_init). No statement waits for a result: all
 * statements and the commit are sent to the server in one batch.
 */
export async function saveChanges(tx: RunSql, changes: readonly RunChange[], context: ChangeContext): Promise<void> {
  for (const change of changes) {
    if (changesRun(change)) await updateRun(tx, change);
    if (isTerminal(change.next.run) && change.next.run !== change.run.state)
      tx.announce?.(finishedAnnouncement(change.run.uid, change.next.run));
    if (endsAttempt(change)) await recordComputeInterval(tx, change);
    await updateExecution(tx, change);
    if (change.next.hasNextExecution) await queueFurtherExecution(tx, change, context);
    if (change.wait !== undefined) await updateWait(tx, change);
    if (change.directive) await addDirective(tx, change.run.execution, change.directive);
  }
  const released = changes.filter(({ run, next }) => next.lease === "release" && run.execution.lease);
  await releaseCapacity(
    tx,
    released.filter(({ run }) => !run.execution.isLocal).map(({ run }) => run),
  );
  // Updates leases in the order in which heartbeats lock them.
  for (const change of changes.toSorted((a, b) => a.run.execution.id - b.run.execution.id)) {
    await updateLease(tx, change);
    await appendRunEvents(tx, change.run.uid, change.events);
    const { id, attempt, lease } = change.run.execution;
    if (change.next.execution === "ENDED" && lease?.isAccepted)
      await enqueueTranscript(tx, change.run.uid, id, attempt);
  }
  if (released.length > 0 || changes.some(({ next }) => next.hasNextExecution || next.execution === "QUEUED"))
    tx.announce?.(topics.work);
  await appendEvents(
    tx,
    changes.flatMap((change) => lifecycleEvents(change, change.run.version + 1, context)),
  );
}

/** Whether a change updates the run's row. A change that only informs the run (a child has ended) does not. */
const changesRun = ({ run, next, sessionUid, submittedPrompt }: RunChange): boolean =>
  next.run !== run.state ||
  next.lease !== "unchanged" ||
  next.hasNextExecution ||
  next.status !== undefined ||
  sessionUid !== undefined ||
  submittedPrompt !== undefined;

async function updateRun(tx: Sql, { run, next, sessionUid, submittedPrompt }: RunChange): Promise<void> {
  const isEnd = isTerminal(next.run) && next.run !== run.state;
  // A debug window does not count as run time.
  const endsWork = run.execution.state !== "DEBUG" && (next.lease === "release" || next.execution === "DEBUG");
  await sendTo(
    tx,
    `UPDATE runs SET state = $2, version = version + 1, updated_at = clock_timestamp(),
            status_message = CASE WHEN $3 THEN $4 ELSE status_message END,
            error_code = CASE WHEN $3 THEN $5 ELSE error_code END,
            error_retryable = CASE WHEN $3 THEN $6::boolean ELSE error_retryable END,
            started_at = CASE WHEN $7 THEN coalesce(started_at, clock_timestamp()) ELSE started_at END,
            finished_at = CASE WHEN $8 THEN clock_timestamp() WHEN $9 THEN finished_at END,
            session_uid = coalesce($10, session_uid),
            submitted_prompt = coalesce($11, submitted_prompt),
            execution_count = execution_count + CASE WHEN $12::boolean THEN 1 ELSE 0 END,
            execution_location = CASE WHEN $12 THEN 'REMOTE' ELSE execution_location END,
            run_time_ms = run_time_ms + CASE WHEN $13 THEN coalesce((
              SELECT (extract(epoch FROM clock_timestamp() - x.claimed_at) * 1000)::bigint FROM executions x WHERE x.id = $14), 0) ELSE 0 END
      WHERE uid = $1`,
    [
      run.uid,
      next.run,
      next.status !== undefined,
      next.status?.message ?? null,
      next.status?.errorCode ?? null,
      next.status?.retryable ?? null,
      run.state === "CLAIMED" && next.run === "INPROGRESS",
      isEnd,
      isTerminal(next.run),
      sessionUid ?? null,
      submittedPrompt ?? null,
      next.hasNextExecution,
      endsWork,
      run.execution.id,
    ],
  );
  if (submittedPrompt === undefined) return;
  await sendTo(
    tx,
    "UPDATE run_texts SET text = run_text(r.title, r.skill_spec, $2) FROM runs r WHERE r.uid = $1 AND run_uid = $1",
    [run.uid, submittedPrompt],
  );
}

async function updateExecution(
  tx: Sql,
  { run, next, snapshotKey, isWorkspaceUnchanged = false, debugWindowMs, parkedMs }: RunChange,
): Promise<void> {
  const before = run.execution.state;
  if (next.execution === before && next.lease === "unchanged") return;
  // The events of an interrupted attempt remain valid: the next attempt continues from them.
  const isInterrupted = before === "RUNNING" && next.execution === "QUEUED";
  await sendTo(
    tx,
    `UPDATE executions SET state = $2, outcome = $3, setup_losses = $4, run_losses = $5,
            accepted_attempt = CASE WHEN $2 = 'CLAIMED' THEN attempt ELSE accepted_attempt END,
            claimed_at = CASE $2 WHEN 'CLAIMED' THEN clock_timestamp() WHEN 'QUEUED' THEN NULL ELSE claimed_at END,
            started_at = CASE $2 WHEN 'RUNNING' THEN clock_timestamp() WHEN 'QUEUED' THEN NULL ELSE started_at END,
            sandbox_vcpus = CASE WHEN $2 <> 'QUEUED' THEN sandbox_vcpus END,
            sandbox_memory_gb = CASE WHEN $2 <> 'QUEUED' THEN sandbox_memory_gb END,
            stall_warned_at = NULL,
            ended_at = CASE WHEN $2 = 'ENDED' THEN clock_timestamp() END,
            sandbox_running = sandbox_running AND NOT $6,
            snapshot_key = coalesce($7, snapshot_key),
            workspace_unchanged = $12,
            parked_session_uid = CASE WHEN $9::float8 > 0 THEN $10::uuid END,
            parked_until = CASE WHEN $9::float8 > 0 THEN clock_timestamp() + $9::float8 * interval '1 ms' END,
            debug_since = CASE WHEN $2 = 'DEBUG' THEN clock_timestamp() END,
            debug_until = CASE WHEN $2 = 'DEBUG' THEN clock_timestamp() + $8 * interval '1 ms' END,
            retained_attempts = CASE WHEN $11 THEN array_append(retained_attempts, attempt) ELSE retained_attempts END
      WHERE id = $1`,
    [
      run.execution.id,
      next.execution,
      next.outcome ?? null,
      next.setupLosses,
      next.runLosses,
      next.lease === "release",
      snapshotKey ?? null,
      debugWindowMs ?? 0,
      parkedMs ?? 0,
      run.execution.lease?.sessionUid ?? null,
      isInterrupted,
      isWorkspaceUnchanged,
    ],
  );
}

/**
 * Queues a further execution, preferably for the worker session that still retains the workspace of the previous one.
 */
const queueFurtherExecution = (tx: RunSql, { run }: RunChange, context: ChangeContext): Promise<unknown> =>
  sendTo(
    tx,
    `INSERT INTO executions (run_uid, seq, state, lane_id, depth, traceparent, preferred_session_uid, preferred_until)
     SELECT $1, n.seq, 'QUEUED', $2, $3, $4, x.parked_session_uid, clock_timestamp() + $6 * interval '1 ms'
       FROM (SELECT max(seq) + 1 AS seq FROM executions WHERE run_uid = $1) n LEFT JOIN executions x ON x.id = $5 AND x.parked_until > clock_timestamp()`,
    [
      run.uid,
      run.execution.laneId,
      run.depth,
      traceOfRun(run, context) ?? currentTraceparent(),
      run.execution.id,
      tx.timings.affinityMs,
    ],
  );

async function updateWait(tx: Sql, { run, wait }: RunChange): Promise<void> {
  await sendTo(tx, "DELETE FROM waits WHERE run_uid = $1", [run.uid]);
  if (wait)
    await sendTo(tx, "INSERT INTO waits (run_uid, policy, run_uids) VALUES ($1, $2, $3)", [
      run.uid,
      wait.policy,
      wait.runUids,
    ]);
}

async function updateLease(tx: RunSql, { run, next, directive }: RunChange): Promise<void> {
  const { id, attempt, lease } = run.execution;
  switch (next.lease) {
    case "unchanged":
      break;
    case "accept":
      await sendTo(
        tx,
        `WITH lease AS (UPDATE leases SET accepted = true, expires_at = clock_timestamp() + $4 * interval '1 ms' WHERE execution_id = $2)
         UPDATE run_streams SET execution_id = $2, attempt = $3, last_client_seq = 0, last_worker_at = NULL WHERE run_uid = $1`,
        [run.uid, id, attempt, tx.timings.leaseTtlMs],
      );
      break;
    case "stop":
      await sendTo(
        tx,
        "UPDATE leases SET fence_at = clock_timestamp() + $2 * interval '1 ms' WHERE execution_id = $1",
        [id, tx.timings.stopGraceMs],
      );
      break;
    case "release":
      await sendTo(
        tx,
        `WITH lease AS (DELETE FROM leases WHERE execution_id = $2)
         UPDATE run_streams SET execution_id = NULL, attempt = NULL WHERE run_uid = $1 AND execution_id = $2`,
        [run.uid, id],
      );
      break;
  }
  if (lease && (directive || next.lease === "stop")) tx.announce?.(topics.session(lease.sessionUid));
}

function lifecycleEvents(change: RunChange, version: number, by: ChangeContext) {
  const { run, next } = change;
  const context = { ...by, traceparent: traceOfRun(run, by) };
  if (next.run === run.state) return endsAttempt(change) ? [attemptEnded(run, version, context)] : [];
  const changed = stateChanged(run, next.run, version, context);
  return isTerminal(next.run) ? [changed, runFinished(run, next, version, context)] : [changed];
}
