import { newUid } from "@millwright/ids";
import type { NewRunEvent } from "../domain/run-events.ts";
import { lifecycleOf, type LockedRun, type RunChange, type Wait, type RunOfExecution } from "../domain/run-change.ts";
import { isExecuting, transition } from "../domain/run-state.ts";
import type { InRunTransaction, RunTransaction } from "../store/run-transaction.ts";
import { isTerminal, statusMessage, type Outcome, type RunStatus } from "../domain/run.ts";
import { childrenMessage, evaluateWait, waitingMessage, type Child } from "../domain/wait.ts";
import type { LeaseRef, WorkerSession } from "../domain/worker-session.ts";
import { finished, requeuedEvent, windowEnded } from "./execution-events.ts";
import { processBatched } from "./process-batched.ts";
import { settleChanges } from "./settle-changes.ts";

export type Completion = LeaseRef & {
  readonly outcome: Outcome;
  readonly error?: {
    readonly code: string;
    readonly message: string;
    readonly retryable: boolean;
    readonly reason: string;
  };
  /** Every event up to this sequence number must have been acknowledged. */
  readonly lastClientSeq: number;
  readonly snapshotKey?: string;
  /** There is no snapshot because the workspace is unchanged since its repositories were cloned. */
  readonly isWorkspaceUnchanged?: boolean;
  readonly waitFor?: Wait;
  /** How long the worker retains the saved workspace, in milliseconds. */
  readonly parkedMs?: number;
  /**
   * Set if setup FAILED: the worker retains the workspace and the shell for the debug window, and completes the
   * execution again when the window ends.
   */
  readonly isRetained?: boolean;
  /** The question of the agent, if BLOCKED. */
  readonly message?: string;
};

export type CompletionResult = LeaseRef & {
  readonly error: "" | "LEASE_LOST" | "EVENTS_PENDING" | "ALREADY_TERMINAL";
  readonly ackedClientSeq: number;
};

export type CompleteExecutionsDeps = {
  readonly runs: InRunTransaction;
  /** Returns the run of an execution and its parent. Read without a lock, because neither ever changes. */
  runOfExecution(executionId: number): Promise<RunOfExecution | undefined>;
};

type Item = { readonly completion: Completion; readonly ref: RunOfExecution };

/**
 * Completes executions. Runs without a parent share one transaction; each other run has its own, because its end
 * changes its parent, which several runs may share. Safe to repeat with the same outcome for the same attempt. A run
 * with more work (an undelivered follow-up, or awaited children that have already ended) is queued again instead of
 * ending. The end of an execution that was being stopped does not change the state of its run.
 */
export async function completeExecutions(
  deps: CompleteExecutionsDeps,
  session: WorkerSession,
  completions: readonly Completion[],
): Promise<CompletionResult[]> {
  const items = await Promise.all(
    completions.map(async (completion) => ({ completion, ref: await deps.runOfExecution(completion.executionId) })),
  );
  const found = items.filter((item): item is Item => item.ref !== undefined);
  const results = new Map<Completion, CompletionResult>();
  await processBatched(
    found,
    ({ ref }) => (ref.parentRunUid ? undefined : ref.uid),
    (group) =>
      deps.runs(async (tx) => {
        const completed = await complete(tx, session, group);
        for (const [n, { completion }] of group.entries()) results.set(completion, completed[n]!);
      }),
  );
  return completions.map((completion) => results.get(completion) ?? resultOf(completion, "LEASE_LOST"));
}

const resultOf = (
  { executionId, attempt }: Completion,
  error: CompletionResult["error"],
  ackedClientSeq = 0,
): CompletionResult => ({ executionId, attempt, error, ackedClientSeq });

async function complete(
  tx: RunTransaction,
  session: WorkerSession,
  group: readonly Item[],
): Promise<CompletionResult[]> {
  const uids = group.flatMap(({ ref }) => [ref.uid, ...(ref.parentRunUid ? [ref.parentRunUid] : [])]);
  const locked = await tx.lockRuns(
    uids,
    group.map(({ completion }) => completion.executionId),
  );
  const decisions = await Promise.all(
    group.map(({ completion, ref }) =>
      decideCompletion(
        tx,
        session,
        completion,
        locked.find(({ uid }) => uid === ref.uid),
      ),
    ),
  );
  const changes = decisions.flatMap(({ change }) => (change ? [change] : []));
  if (changes.length > 0)
    await settleChanges(tx, changes, locked, {
      actor: { type: "worker", uid: session.workerHost },
      requestId: newUid(),
    });
  return decisions.map(({ result }) => result);
}

type CompletionDecision = { readonly result: CompletionResult; readonly change?: RunChange };

async function decideCompletion(
  tx: RunTransaction,
  session: WorkerSession,
  completion: Completion,
  run: LockedRun | undefined,
): Promise<CompletionDecision> {
  const { executionId, attempt } = completion;
  const refused = (error: CompletionResult["error"], acked?: number): CompletionDecision => ({
    result: resultOf(completion, error, acked),
  });
  if (!run || run.execution.id !== executionId || run.execution.attempt !== attempt) return refused("LEASE_LOST");
  if (run.execution.state === "ENDED")
    return refused(run.execution.outcome === completion.outcome ? "" : "ALREADY_TERMINAL");
  const { lease } = run.execution;
  if (!lease?.isAccepted || lease.sessionUid !== session.uid) return refused("LEASE_LOST");
  const [acked = 0, hasUndelivered, snapshotKey] = await Promise.all([
    tx.ackedClientSeq(executionId, attempt),
    tx.hasUndeliveredDirectives(run.uid, executionId),
    ownSnapshot(tx, completion),
  ]);
  if (acked < completion.lastClientSeq) return refused("EVENTS_PENDING", acked);

  if (run.execution.state === "DEBUG") {
    if (completion.isRetained) return refused("", acked); // a retry, because the first response was lost
    return {
      result: resultOf(completion, "", acked),
      change: windowEnded(
        run,
        { type: "complete", outcome: "FAILED", needsNextExecution: false },
        windowEnd(completion),
      ),
    };
  }
  const wasStopping = run.execution.state === "STOPPING";
  const change =
    wasStopping || !isExecuting(run.execution.state)
      ? stopChange(run, completion)
      : await endExecution(tx, run, completion, hasUndelivered);
  const result = resultOf(
    completion,
    wasStopping && completion.outcome !== "CANCELLED" ? "ALREADY_TERMINAL" : "",
    acked,
  );
  return {
    result,
    change: {
      ...change,
      snapshotKey,
      isWorkspaceUnchanged: completion.isWorkspaceUnchanged || undefined,
      parkedMs: completion.parkedMs || undefined,
    },
  };
}

/** Ignores a key that was not issued to this execution: another run's workspace must not be restored here. */
async function ownSnapshot(tx: RunTransaction, { snapshotKey, executionId }: Completion): Promise<string | undefined> {
  if (!snapshotKey || !(await tx.ownsSnapshot(snapshotKey, executionId))) return undefined;
  await tx.deleteOtherSnapshots(executionId, snapshotKey);
  return snapshotKey;
}

const stopChange = (run: LockedRun, { outcome }: Completion): RunChange => ({
  run,
  next: transition(lifecycleOf(run), { type: "complete", outcome, needsNextExecution: false }),
  events: [],
});

/** Returns why a worker ends a debug window: it has expired, or the reason that the worker reports. */
const windowEnd = ({ outcome, message }: Completion): string =>
  outcome === "FAILED" ? message || "window_over" : outcome.toLowerCase();

async function endExecution(
  tx: RunTransaction,
  run: LockedRun,
  completion: Completion,
  hasUndelivered: boolean,
): Promise<RunChange> {
  const { outcome } = completion;
  const debugWindowMs =
    completion.isRetained && outcome === "FAILED" && run.execution.state === "CLAIMED"
      ? await tx.debugWindowMs(run.uid)
      : 0;
  if (debugWindowMs > 0) return openDebugWindow(run, completion, debugWindowMs);
  const wait = outcome === "WAITING" ? await readWait(tx, run, completion.waitFor) : undefined;
  const needsNextExecution = hasUndelivered || wait?.isComplete === true;
  const status = wait ? { message: waitingMessage(wait.awaited.length - wait.ended.length) } : statusOf(completion);
  const next = transition(lifecycleOf(run), {
    type: "complete",
    outcome,
    needsNextExecution,
    status,
  });
  const isWaiting = outcome === "WAITING" && !next.hasNextExecution;
  if (wait?.isComplete && next.hasNextExecution) await addChildrenMessage(tx, run, wait.ended);
  return {
    run,
    next,
    events: eventsOf(run, next, completion, wait?.isComplete === true),
    wait: isWaiting && wait ? { policy: wait.policy, runUids: wait.awaited.map(({ uid }) => uid) } : undefined,
  };
}

function openDebugWindow(run: LockedRun, completion: Completion, debugWindowMs: number): RunChange {
  const { id } = run.execution;
  const next = transition(lifecycleOf(run), { type: "retain", status: statusOf(completion)! });
  const reason = completion.error?.reason;
  const opened: NewRunEvent = { kind: "debug_window_opened", payload: { window_ms: debugWindowMs }, executionId: id };
  return { run, next, events: [finished(next, id, reason ? { reason } : {}), opened], debugWindowMs };
}

type EvaluatedWait = {
  readonly policy: Wait["policy"];
  readonly awaited: readonly Child[];
  readonly isComplete: boolean;
  readonly ended: readonly Child[];
};

/**
 * Without names, the run waits for every child whose end has not been reported to it. Names of runs that are not its
 * children are ignored.
 */
async function readWait(tx: RunTransaction, run: LockedRun, waitFor: Wait | undefined): Promise<EvaluatedWait> {
  const policy = waitFor?.policy ?? "all";
  const awaited = await tx.unreportedChildren(run.uid, waitFor?.runUids ?? []);
  return { policy, awaited, ...evaluateWait(policy, awaited) };
}

async function addChildrenMessage(tx: RunTransaction, run: LockedRun, ended: readonly Child[]): Promise<void> {
  await tx.addMessage({
    uid: newUid(),
    runUid: run.uid,
    kind: "children",
    text: childrenMessage(ended),
    mode: "normal",
    author: { type: "run", uid: run.uid },
  });
  await tx.markReported(run.uid, ended);
}

function eventsOf(
  run: LockedRun,
  next: RunChange["next"],
  { error }: Completion,
  isWaitComplete: boolean,
): NewRunEvent[] {
  const { id } = run.execution;
  if (next.hasNextExecution) return [requeuedEvent(isWaitComplete ? "children" : "followup", id)];
  if (isTerminal(next.run)) return [finished(next, id, error?.reason ? { reason: error.reason } : {})];
  return [{ kind: "run_waiting", payload: { message: next.status?.message ?? "" }, executionId: id }];
}

const DEFAULT_MESSAGES: Partial<Record<Outcome, string>> = {
  FAILED: "The run failed.",
  ERROR: "The platform could not finish the run.",
  BLOCKED: "The agent waits for an answer.",
  CANCELLED: "The worker cancelled the execution.",
};

function statusOf({ outcome, error, message }: Completion): RunStatus | undefined {
  const whole = message || error?.message || DEFAULT_MESSAGES[outcome];
  if (whole === undefined) return undefined;
  const text = statusMessage(whole);
  if (outcome !== "FAILED" && outcome !== "ERROR") return { message: text };
  return { message: text, errorCode: error?.code || "internal_error", retryable: error?.retryable ?? false };
}
