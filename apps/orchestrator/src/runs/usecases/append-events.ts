import { isUuid, newUid } from "@millwright/ids";
import {
  EVENTS_PER_RUN_MAX,
  quotaMessage,
  type EventQuota,
  type WorkerEvent,
  type AppendOutcome,
  type AttemptRef,
} from "../domain/run-events.ts";
import { lifecycleOf, type ChangeContext, type LockedRun, type RunChange } from "../domain/run-change.ts";
import { isExecuting, transition } from "../domain/run-state.ts";
import type { InRunTransaction, RunTransaction } from "../store/run-transaction.ts";
import { reportedShape } from "../domain/sandbox-shape.ts";
import type { LeaseRef, WorkerSession } from "../domain/worker-session.ts";
import { finished, windowEnded } from "./execution-events.ts";
import { settleChanges } from "./settle-changes.ts";

export type EventBatch = LeaseRef & { readonly events: readonly WorkerEvent[] };
export type AppendResult = LeaseRef & {
  readonly ackedClientSeq: number;
  readonly error: "" | "LEASE_LOST" | "SEQUENCE_GAP";
};

export type AppendEventsDeps = {
  readonly runs: InRunTransaction;
  /** Returns the run of an attempt whose lease this session may own; undefined if it certainly does not. */
  findRunOfLease(session: WorkerSession, lease: LeaseRef): Promise<string | undefined>;
};

/** The kinds of events that change the run itself. Their batches lock the run first. */
const STATE_KINDS: readonly string[] = [
  "agent_started",
  "agent_resumed",
  "sandbox_ready",
  "sandbox_stopped",
  "message",
  "checkpoint",
];

/**
 * Appends events of executions to their runs. Each batch is appended completely or not at all. A batch that was
 * appended before is acknowledged again and adds nothing. `agent_started` and `agent_resumed` make the run INPROGRESS;
 * `message` with a uid marks that message as delivered to the agent; `checkpoint` names the workspace from which the
 * next attempt starts.
 */
export const appendEvents = (
  deps: AppendEventsDeps,
  session: WorkerSession,
  batches: readonly EventBatch[],
): Promise<AppendResult[]> => Promise.all(batches.map((batch) => append(deps, session, batch)));

async function append(deps: AppendEventsDeps, session: WorkerSession, batch: EventBatch): Promise<AppendResult> {
  const { executionId, attempt, events } = batch;
  const runUid = await deps.findRunOfLease(session, batch);
  if (runUid === undefined) return { executionId, attempt, ackedClientSeq: 0, error: "LEASE_LOST" };
  const ref: AttemptRef = { runUid, executionId, attempt };
  const touchesRun = events.some(({ kind }) => STATE_KINDS.includes(kind));
  const outcome = await deps.runs((tx) =>
    touchesRun ? appendToLockedRun(tx, ref, session, events) : tx.appendWorkerEvents(ref, events),
  );
  const quota = outcome.outcome === "appended" ? exceededQuota(outcome.lastSeq, events) : undefined;
  if (quota) await deps.runs((tx) => stopForQuota(tx, ref, quota));
  return { executionId, attempt, ...resultOf(outcome) };
}

function resultOf(outcome: AppendOutcome): Pick<AppendResult, "ackedClientSeq" | "error"> {
  switch (outcome.outcome) {
    case "appended":
      return { ackedClientSeq: outcome.ackedClientSeq, error: "" };
    case "gap":
      return { ackedClientSeq: outcome.ackedClientSeq, error: "SEQUENCE_GAP" };
    default:
      return { ackedClientSeq: 0, error: outcome.outcome === "lease_lost" ? "LEASE_LOST" : (outcome satisfies never) };
  }
}

/** Appends events of one attempt in a transaction that may have locked the run already. */
export async function appendToLockedRun(
  tx: RunTransaction,
  ref: AttemptRef,
  session: WorkerSession,
  events: readonly WorkerEvent[],
): Promise<AppendOutcome> {
  const [run] = await tx.lockRuns([ref.runUid], [ref.executionId]);
  const outcome = await tx.appendWorkerEvents(ref, events);
  if (!run || outcome.outcome !== "appended") return outcome;
  const named = events.map(({ kind, payload }) => (kind === "message" ? payload["message_uid"] : undefined));
  const seen = named.filter((uid) => typeof uid === "string").filter(isUuid);
  if (seen.length > 0) await tx.markDelivered(run.uid, seen);
  const sandbox = events.findLast(({ kind }) => kind === "sandbox_ready" || kind === "sandbox_stopped");
  if (sandbox) await tx.setSandboxRunning(ref.executionId, sandbox.kind === "sandbox_ready");
  const ready = events.findLast(({ kind }) => kind === "sandbox_ready");
  const shape = ready && reportedShape(ready.payload);
  if (shape) await tx.setSandboxShape(ref.executionId, shape);
  const checkpoint = events.findLast(({ kind }) => kind === "checkpoint")?.payload["snapshot_key"];
  if (typeof checkpoint === "string" && (await tx.ownsSnapshot(checkpoint, ref.executionId)))
    await tx.setCheckpoint(ref.executionId, checkpoint);
  const started = events.findLast(({ kind }) => kind === "agent_started" || kind === "agent_resumed");
  if (started && run.execution.state === "CLAIMED")
    await tx.saveChanges([agentStarted(run, started)], contextOf(session));
  return outcome;
}

function agentStarted(run: LockedRun, { payload }: WorkerEvent): RunChange {
  const sessionUid = payload["session_id"];
  return {
    run,
    next: transition(lifecycleOf(run), { type: "agent_started" }),
    events: [],
    sessionUid: typeof sessionUid === "string" ? sessionUid : undefined,
  };
}

const contextOf = (session: WorkerSession): ChangeContext => ({
  actor: { type: "worker", uid: session.workerHost },
  requestId: newUid(),
});

const exceededQuota = (lastSeq: number, events: readonly WorkerEvent[]): EventQuota | undefined =>
  events.some(({ isOversized }) => isOversized)
    ? "event_size_quota"
    : lastSeq > EVENTS_PER_RUN_MAX
      ? "event_quota"
      : undefined;

/** Stops a run that exceeds an event quota. Its worker may still append events until the execution has stopped. */
async function stopForQuota(tx: RunTransaction, ref: AttemptRef, quota: EventQuota): Promise<void> {
  const parentUid = await tx.parentOf(ref.runUid);
  const locked = await tx.lockRuns([ref.runUid, ...(parentUid ? [parentUid] : [])], [ref.executionId]);
  const run = locked.find(({ uid }) => uid === ref.runUid);
  if (!run || run.execution.attempt !== ref.attempt) return;
  const context: ChangeContext = { actor: { type: "service", uid: "orchestrator" }, requestId: newUid() };
  if (run.execution.state === "DEBUG")
    return settleChanges(tx, [windowEnded(run, { type: "lose" }, quota)], locked, context);
  if (!isExecuting(run.execution.state)) return;
  const message = quotaMessage(quota);
  const status = { message, errorCode: "operation_not_supported", retryable: false };
  const next = transition(lifecycleOf(run), { type: "stop", state: "FAILED", status });
  const events = [finished(next, ref.executionId, { reason: quota })];
  const change: RunChange = { run, next, events, directive: { kind: "cancel", payload: { reason: message } } };
  await settleChanges(tx, [change], locked, context);
}
