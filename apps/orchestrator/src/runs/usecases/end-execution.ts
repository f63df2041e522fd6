import { evaluateWait } from "../domain/wait.ts";
import { newUid } from "@millwright/ids";
import type { NewRunEvent } from "../domain/run-events.ts";
import { lifecycleOf, type LockedRun, type RunChange, type Wait } from "../domain/run-change.ts";
import { transition } from "../domain/run-state.ts";
import type { RunTransaction } from "../store/run-transaction.ts";
import { isTerminal, statusMessage, type Outcome, type RunStatus } from "../domain/run.ts";
import { childrenMessage, waitingMessage, type Child } from "../domain/wait.ts";
import type { LeaseRef } from "../domain/worker-session.ts";
import { finished, requeuedEvent } from "./execution-events.ts";

/** The report of a worker that an execution has ended. */
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

/**
 * Returns the change of a run whose worker has completed its execution: the run ends, waits for children, is queued again
 * because it has more work, or retains its failed setup for debugging.
 */
export async function endExecution(tx: RunTransaction, run: LockedRun, completion: Completion): Promise<RunChange> {
  const { outcome } = completion;
  const debugWindowMs =
    completion.isRetained && outcome === "FAILED" && run.execution.state === "CLAIMED"
      ? await tx.debugWindowMs(run.uid)
      : 0;
  if (debugWindowMs > 0) return openDebugWindow(run, completion, debugWindowMs);
  const wait = outcome === "WAITING" ? await readWait(tx, run, completion.waitFor) : undefined;
  const needsNextExecution = run.execution.hasUndeliveredDirectives || wait?.isComplete === true;
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
