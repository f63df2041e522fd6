import { newUid } from "@millwright/ids";
import { lifecycleOf, type LockedRun, type RunChange, type RunOfExecution } from "../domain/run-change.ts";
import { isExecuting, transition } from "../domain/run-state.ts";
import type { InRunTransaction, RunTransaction } from "../store/run-transaction.ts";
import type { LeaseRef, WorkerSession } from "../domain/worker-session.ts";
import { windowEnded } from "./execution-events.ts";
import { processBatched } from "./process-batched.ts";
import { settleChanges } from "./settle-changes.ts";
import { endExecution, type Completion } from "./end-execution.ts";

export type CompletionResult = LeaseRef & {
  readonly error: "" | "LEASE_LOST" | "EVENTS_PENDING" | "ALREADY_TERMINAL";
  readonly ackedClientSeq: number;
};

export type CompleteExecutionsDeps = {
  readonly runs: InRunTransaction;
  /** Returns the runs of executions and their parents. Read without a lock, because none of it ever changes. */
  runsOfExecutions(executionIds: readonly number[]): Promise<ReadonlyMap<number, RunOfExecution>>;
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
  const refs = await deps.runsOfExecutions(completions.map(({ executionId }) => executionId));
  const found = completions.flatMap((completion): Item[] => {
    const ref = refs.get(completion.executionId);
    return ref ? [{ completion, ref }] : [];
  });
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
  const { ackedClientSeq: acked = 0 } = run.execution;
  const snapshotKey = await ownSnapshot(tx, completion);
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
      : await endExecution(tx, run, completion);
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
  outcome === "FAILED" ? message || "window_expired" : outcome.toLowerCase();
