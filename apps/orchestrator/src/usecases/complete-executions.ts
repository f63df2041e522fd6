import { newUid } from "@millwright/ids";
import type { NewRunEvent } from "../domain/run-events.ts";
import { lifeOf, type LockedRun, type RunChange, type Wait } from "../domain/run-change.ts";
import { isHeld, transition } from "../domain/run-state.ts";
import type { InRunTransaction, RunTransaction } from "../domain/run-transaction.ts";
import { isTerminal, type Outcome, type RunStatus } from "../domain/run.ts";
import { childrenMessage, judgeWait, waitingMessage, type Child } from "../domain/wait.ts";
import type { LeaseRef, WorkerSession } from "../domain/worker-session.ts";
import { finished, queuedAgain } from "./execution-events.ts";
import { settleChanges } from "./settle-changes.ts";

export type Completion = LeaseRef & {
  readonly outcome: Outcome;
  readonly error?: { readonly code: string; readonly message: string; readonly retryable: boolean; readonly reason: string };
  /** Every event up to here must have been acknowledged. */
  readonly lastClientSeq: number;
  readonly snapshotKey?: string;
  readonly waitFor?: Wait;
  /** BLOCKED: what the agent asks. */
  readonly message?: string;
};

export type CompletionResult = LeaseRef & {
  readonly error: "" | "LEASE_LOST" | "EVENTS_PENDING" | "ALREADY_TERMINAL";
  readonly ackedClientSeq: number;
};

export type CompleteExecutionsDeps = { readonly runs: InRunTransaction };

/**
 * Ends executions, each in its own transaction. The worker may repeat it: the same outcome of the same attempt is fine.
 * A run that has something more to do (a follow-up its agent has not seen, children that were faster than its wait) is
 * queued again instead of ending. An execution that was told to stop ends without a word about its run.
 */
export const completeExecutions = (deps: CompleteExecutionsDeps, session: WorkerSession, completions: readonly Completion[]): Promise<CompletionResult[]> =>
  Promise.all(completions.map((completion) => deps.runs((tx) => complete(tx, session, completion))));

async function complete(tx: RunTransaction, session: WorkerSession, completion: Completion): Promise<CompletionResult> {
  const { executionId, attempt } = completion;
  const answer = (error: CompletionResult["error"], ackedClientSeq = 0): CompletionResult => ({ executionId, attempt, error, ackedClientSeq });
  const ref = await tx.runOfExecution(executionId);
  if (!ref) return answer("LEASE_LOST");
  const locked = await tx.lockRuns([ref.uid, ...(ref.parentRunUid ? [ref.parentRunUid] : [])], executionId);
  const run = locked.find(({ uid }) => uid === ref.uid);
  if (!run || run.execution.attempt !== attempt) return answer("LEASE_LOST");
  if (run.execution.state === "ENDED") return answer(run.execution.outcome === completion.outcome ? "" : "ALREADY_TERMINAL");
  const { lease } = run.execution;
  if (!lease?.isAccepted || lease.sessionUid !== session.uid) return answer("LEASE_LOST");
  const acked = (await tx.ackedClientSeq(executionId, attempt)) ?? 0;
  if (acked < completion.lastClientSeq) return answer("EVENTS_PENDING", acked);

  const snapshotKey = await ownSnapshot(tx, completion);
  const wasStopping = run.execution.state === "STOPPING";
  const change = wasStopping || !isHeld(run.execution.state) ? stopped(run, completion) : await end(tx, run, completion);
  const saved = snapshotKey ? { ...change, snapshotKey } : change;
  await settleChanges(tx, [saved], locked, { actor: { type: "worker", uid: session.workerHost }, requestId: newUid() });
  return answer(wasStopping && completion.outcome !== "CANCELLED" ? "ALREADY_TERMINAL" : "", acked);
}

/** A key that this attempt was not given is passed over: another run's workspace must not be restored here. */
const ownSnapshot = async (tx: RunTransaction, completion: Completion): Promise<string | undefined> =>
  completion.snapshotKey && (await tx.ownsSnapshot(completion.snapshotKey, completion)) ? completion.snapshotKey : undefined;

const stopped = (run: LockedRun, { outcome }: Completion): RunChange => ({
  run,
  next: transition(lifeOf(run), { type: "complete", outcome, isWanted: false }),
  events: [],
});

async function end(tx: RunTransaction, run: LockedRun, completion: Completion): Promise<RunChange> {
  const { outcome } = completion;
  const hasUnseen = await tx.hasUnseenDirectives(run.uid, run.execution.id);
  const wait = outcome === "WAITING" ? await judge(tx, run, completion.waitFor) : undefined;
  const isWanted = hasUnseen || wait?.isOver === true;
  const status = wait ? { message: waitingMessage(wait.awaited.length - wait.ended.length) } : statusOf(completion);
  const next = transition(lifeOf(run), { type: "complete", outcome, isWanted, ...(status ? { status } : {}) });
  const parks = outcome === "WAITING" && !next.isFollowed;
  if (wait?.isOver && next.isFollowed) await handOver(tx, run, wait.ended);
  return {
    run,
    next,
    events: eventsOf(run, next, completion, wait?.isOver === true),
    ...(parks && wait ? { wait: { policy: wait.policy, runUids: wait.awaited.map(({ uid }) => uid) } } : {}),
  };
}

type Judged = { readonly policy: Wait["policy"]; readonly awaited: readonly Child[]; readonly isOver: boolean; readonly ended: readonly Child[] };

/** No names: every child whose end the parent has not been told. Names of others than its children wait for nothing. */
async function judge(tx: RunTransaction, run: LockedRun, waitFor: Wait | undefined): Promise<Judged> {
  const policy = waitFor?.policy ?? "all";
  const awaited = await tx.unreportedChildren(run.uid, waitFor?.runUids ?? []);
  return { policy, awaited, ...judgeWait(policy, awaited) };
}

async function handOver(tx: RunTransaction, run: LockedRun, ended: readonly Child[]): Promise<void> {
  await tx.addMessage({
    uid: newUid(), runUid: run.uid, kind: "children", text: childrenMessage(ended), mode: "normal", author: { type: "run", uid: run.uid },
  });
  await tx.markReported(run.uid, ended);
}

function eventsOf(run: LockedRun, next: RunChange["next"], { error }: Completion, isWaitOver: boolean): NewRunEvent[] {
  const { id } = run.execution;
  if (next.isFollowed) return [queuedAgain(isWaitOver ? "children" : "followup", id)];
  if (isTerminal(next.run)) return [finished(next, id, error?.reason ? { reason: error.reason } : {})];
  return [{ kind: "run_waiting", payload: { message: next.status?.message ?? "" }, executionId: id }];
}

const DEFAULT_MESSAGES: Partial<Record<Outcome, string>> = {
  FAILED: "The run failed.",
  ERROR: "The platform could not finish the run.",
  BLOCKED: "The agent waits for an answer.",
  CANCELLED: "The worker gave the run up.",
};

function statusOf({ outcome, error, message }: Completion): RunStatus | undefined {
  const text = message || error?.message || DEFAULT_MESSAGES[outcome];
  if (text === undefined) return undefined;
  if (outcome !== "FAILED" && outcome !== "ERROR") return { message: text };
  return { message: text, errorCode: error?.code || "internal_error", retryable: error?.retryable ?? false };
}
