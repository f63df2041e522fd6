import type { RunSql } from "./run-sql.ts";
import { sendTo, type Sql } from "@millwright/database";
import { appendEvents } from "@millwright/events";
import { topics } from "../../storage/wakeups.ts";
import { endsAttempt, traceOfRun, type ChangeContext, type RunChange } from "../domain/run-change.ts";
import { isTerminal } from "../domain/run.ts";
import { attemptEnded, stateChanged, runFinished } from "../events/run-events.ts";
import { finishedAnnouncement } from "./finished-announcement.ts";
import { releaseCapacity } from "./capacity-store.ts";
import { saveRows } from "./change-rows.ts";
import { addDirective } from "./directive-store.ts";
import { currentTraceparent } from "../../storage/store/current-traceparent.ts";
import { enqueueTranscripts } from "../../storage/store/blob-work.ts";

/**
 * Saves the changes of locked runs: capacity, rows, further executions, then the lifecycle events. Capacity is released
 * before any lease is changed (see the lock order in 0001_init). No statement waits for a result: all statements and the
 * commit are sent to the server in one batch.
 */
export async function saveChanges(tx: RunSql, changes: readonly RunChange[], context: ChangeContext): Promise<void> {
  if (changes.length === 0) return;
  const released = changes.filter(({ run, next }) => next.lease === "release" && run.execution.lease);
  await releaseCapacity(
    tx,
    released.filter(({ run }) => !run.execution.isLocal).map(({ run }) => run),
  );
  for (const batch of batchesOfDistinctRuns(changes)) await saveRows(tx, batch);
  for (const change of changes) await saveRareParts(tx, change, context);
  const ended = changes.filter(({ run, next }) => next.execution === "ENDED" && run.execution.lease?.isAccepted);
  await enqueueTranscripts(
    tx,
    ended.map(({ run: { uid: runUid, execution } }) => ({
      runUid,
      executionId: execution.id,
      attempt: execution.attempt,
    })),
  );
  announceChanges(tx, changes);
  if (released.length > 0 || changes.some(({ next }) => next.hasNextExecution || next.execution === "QUEUED"))
    tx.announce?.(topics.work);
  await appendEvents(
    tx,
    changes.flatMap((change) => lifecycleEvents(change, change.run.version + 1, context)),
  );
}

/** Several children of one parent may end at once: each of them changes the parent. */
function batchesOfDistinctRuns(changes: readonly RunChange[]): RunChange[][] {
  const batches: RunChange[][] = [];
  const countOfRun = new Map<string, number>();
  for (const change of changes) {
    const earlier = countOfRun.get(change.run.uid) ?? 0;
    countOfRun.set(change.run.uid, earlier + 1);
    (batches[earlier] ??= []).push(change);
  }
  return batches;
}

/** Saves what few changes have: a longer prompt, a further execution, a wait, a directive. */
async function saveRareParts(tx: RunSql, change: RunChange, context: ChangeContext): Promise<void> {
  if (change.submittedPrompt !== undefined) await updateText(tx, change.run.uid, change.submittedPrompt);
  if (change.next.hasNextExecution) await queueFurtherExecution(tx, change, context);
  if (change.wait !== undefined) await updateWait(tx, change);
  if (change.directive) await addDirective(tx, change.run.execution, change.directive);
}

function announceChanges(tx: RunSql, changes: readonly RunChange[]): void {
  for (const { run, next, events, directive } of changes) {
    if (isTerminal(next.run) && next.run !== run.state) tx.announce?.(finishedAnnouncement(run.uid, next.run));
    if (events.length > 0) tx.announce?.(topics.runEvents(run.uid));
    const { lease } = run.execution;
    if (lease && (directive || next.lease === "stop")) tx.announce?.(topics.session(lease.sessionUid));
  }
}

/** Replaces the prompt in the searched text of a run. */
const updateText = (tx: Sql, runUid: string, prompt: string): Promise<void> =>
  sendTo(
    tx,
    "UPDATE run_texts SET text = run_text(r.title, r.skill_spec, $2) FROM runs r WHERE r.uid = $1 AND run_uid = $1",
    [runUid, prompt],
  );

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

function lifecycleEvents(change: RunChange, version: number, by: ChangeContext) {
  const { run, next } = change;
  const context = { ...by, traceparent: traceOfRun(run, by) };
  if (next.run === run.state) return endsAttempt(change) ? [attemptEnded(run, version, context)] : [];
  const changed = stateChanged(run, next.run, version, context);
  return isTerminal(next.run) ? [changed, runFinished(run, next, version, context)] : [changed];
}
