import { DomainError } from "@millwright/errors";
import type { LossPolicy } from "../../catalog/domain/agent-config.ts";
import type { ExecutionState, Outcome, RunState, RunStatus, TerminalState } from "./run.ts";
import { isTerminal } from "./run.ts";
import { RUN_LOSSES_MAX, SETUP_LOSSES_MAX } from "./timings.ts";

/** The state of a run and of one of its executions that the transitions depend on. */
export type LifecycleState = {
  readonly run: RunState;
  readonly execution: ExecutionState;
  /** Numbers of workers lost in this execution before and after the agent started. */
  readonly setupLosses: number;
  readonly runLosses: number;
};

/** A change of a run and one of its executions. */
export type Change =
  | { readonly type: "accept" }
  | { readonly type: "decline" }
  /** A stopping worker returns its lease. No loss is counted. */
  | { readonly type: "return" }
  | { readonly type: "agent_started" }
  /**
   * `needsNextExecution`: a further execution is needed (follow-ups that were not delivered, or awaited children that have all
   * ended).
   */
  | {
      readonly type: "complete";
      readonly outcome: Outcome;
      readonly status?: RunStatus;
      readonly needsNextExecution: boolean;
    }
  /** The setup failed. The worker retains workspace and shell for the debug window. */
  | { readonly type: "retain"; readonly status: RunStatus }
  /**
   * The lease, or the grace period of a stopping execution, expired. `policy` absent: resume; "end": no other worker
   * can resume the execution.
   */
  | { readonly type: "lose"; readonly policy?: LossPolicy | "end" }
  /** `isForced`: a tree is cancelled, so an open offer does not prevent it. */
  | {
      readonly type: "cancel";
      readonly isForced: boolean;
      readonly status: RunStatus;
      /** `Retry-After` of a refusal, in seconds. */ readonly retryAfter?: number;
    }
  /** The execution exceeded a limit of the platform. */
  | { readonly type: "stop"; readonly state: "FAILED" | "ERROR"; readonly status: RunStatus }
  /** A run without a live execution receives a message, or the children it waits for have ended. */
  | { readonly type: "wake" };

/** The result of a change. */
export type Next = LifecycleState & {
  /** Set when the execution ends. */
  readonly outcome?: Outcome;
  /**
   * unchanged · accept: the offer becomes a lease · stop: the lease ends after the grace period · release: the lease is
   * deleted and its capacity released.
   */
  readonly lease: "unchanged" | "accept" | "stop" | "release";
  /** True if a further execution of the run is queued. */
  readonly hasNextExecution: boolean;
  /** The run's new status; absent: unchanged; null: none. */
  readonly status?: RunStatus | null;
};

const OUTCOME_STATES: Readonly<Record<Exclude<Outcome, "WAITING">, TerminalState>> = {
  DONE: "SUCCEEDED",
  FAILED: "FAILED",
  BLOCKED: "BLOCKED",
  CANCELLED: "CANCELLED",
  ERROR: "ERROR",
};

/**
 * Returns the next state of a run and its execution. Every change of a run's state is defined here, except the bulk
 * form of an offer (QUEUED/QUEUED → PENDING/OFFERED, attempt incremented), which is the SQL of the claim. The states
 * are described in docs/run-life-cycle.md.
 *
 * Throws an internal error for a change that does not fit the state: callers must check leases and attempts first.
 * Errors: run_already_finished (invalid_argument), run_pending (conflict, retryable).
 */
export function transition(current: LifecycleState, change: Change): Next {
  switch (change.type) {
    case "accept":
      if (current.execution !== "OFFERED") throw invalidTransition(current, change);
      return { ...current, run: "CLAIMED", execution: "CLAIMED", lease: "accept", hasNextExecution: false };
    case "decline":
      if (current.execution !== "OFFERED") throw invalidTransition(current, change);
      return { ...current, run: "QUEUED", execution: "QUEUED", lease: "release", hasNextExecution: false };
    case "return":
      if (!isExecuting(current.execution)) throw invalidTransition(current, change);
      return requeued(current);
    case "agent_started":
      if (current.execution !== "CLAIMED") return unchanged(current);
      return {
        ...current,
        run: "INPROGRESS",
        execution: "RUNNING",
        lease: "unchanged",
        hasNextExecution: false,
        status: null,
      };
    case "complete":
      return complete(current, change);
    case "retain":
      if (current.execution !== "CLAIMED") throw invalidTransition(current, change);
      return {
        ...current,
        run: "FAILED",
        execution: "DEBUG",
        lease: "unchanged",
        hasNextExecution: false,
        status: change.status,
      };
    case "lose":
      return lose(current, change.policy ?? "resume");
    case "cancel":
      return cancel(current, change);
    case "stop":
      if (!isExecuting(current.execution)) throw invalidTransition(current, change);
      return {
        ...current,
        run: change.state,
        execution: "STOPPING",
        lease: "stop",
        hasNextExecution: false,
        status: change.status,
      };
    case "wake":
      if (isLive(current.execution) || current.execution === "DEBUG") throw invalidTransition(current, change);
      return { ...current, run: "QUEUED", lease: "unchanged", hasNextExecution: true, status: null };
    default:
      return change satisfies never;
  }
}

function complete(current: LifecycleState, change: Change & { type: "complete" }): Next {
  const { outcome, needsNextExecution } = change;
  // The run's state was decided without this execution, so its end only releases its lease and capacity.
  if (current.execution === "STOPPING") return { ...ended(current, "CANCELLED"), run: current.run };
  if (current.execution === "DEBUG") return endDebugWindow(current);
  if (!isExecuting(current.execution)) throw invalidTransition(current, change);
  if (needsNextExecution && outcome !== "CANCELLED")
    return { ...ended(current, outcome), run: "QUEUED", hasNextExecution: true, status: null };
  if (outcome === "WAITING") return { ...ended(current, outcome), run: "INPROGRESS", status: change.status ?? null };
  return { ...ended(current, outcome), run: OUTCOME_STATES[outcome], status: change.status ?? null };
}

function lose(current: LifecycleState, policy: LossPolicy | "end"): Next {
  switch (current.execution) {
    case "OFFERED":
      return { ...current, run: "QUEUED", execution: "QUEUED", lease: "release", hasNextExecution: false };
    case "CLAIMED":
      return restart({ ...current, setupLosses: current.setupLosses + 1 }, current.setupLosses < SETUP_LOSSES_MAX);
    case "RUNNING":
      if (policy !== "resume")
        return {
          ...ended({ ...current, runLosses: current.runLosses + 1 }, "ERROR"),
          run: "ERROR",
          status: policy === "end" ? CLIENT_LOST : WORKER_LOST,
        };
      return restart({ ...current, runLosses: current.runLosses + 1 }, current.runLosses < RUN_LOSSES_MAX);
    case "STOPPING":
      return { ...ended(current, "CANCELLED"), run: current.run };
    case "DEBUG":
      return endDebugWindow(current);
    default:
      throw invalidTransition(current, { type: "lose" });
  }
}

function restart(current: LifecycleState, isAllowed: boolean): Next {
  if (isAllowed) return requeued(current);
  return { ...ended(current, "ERROR"), run: "ERROR", status: WORKERS_LOST };
}

const requeued = (current: LifecycleState): Next => ({
  ...current,
  run: "QUEUED",
  execution: "QUEUED",
  lease: "release",
  hasNextExecution: false,
  status: null,
});

const WORKER_LOST: RunStatus = {
  message:
    "The worker was lost while the agent was working, and the run's configuration does not allow it to resume (on_worker_loss: fail).",
  errorCode: "resource_unavailable",
  retryable: true,
};

const CLIENT_LOST: RunStatus = {
  message: "The client that executed this run stopped reporting.",
  errorCode: "agent_process_failed",
  retryable: false,
};

const WORKERS_LOST: RunStatus = {
  message: "The run lost its workers too often and is not retried again.",
  errorCode: "resource_unavailable",
  retryable: true,
};

function cancel(current: LifecycleState, { isForced, status, retryAfter = 1 }: Change & { type: "cancel" }): Next {
  if (isTerminal(current.run)) {
    throw new DomainError({
      kind: "invalid_argument",
      reason: "run_already_finished",
      message: "The run has already finished. Retry it, or send a follow-up, to continue its work.",
    });
  }
  if (current.run === "PENDING" && !isForced) {
    throw new DomainError({
      kind: "conflict",
      reason: "run_pending",
      retryable: true,
      retryAfterSeconds: retryAfter,
      message: `The run is being assigned to a worker. Retry after ${retryAfter} s.`,
    });
  }
  const cancelled = { run: "CANCELLED", status } as const;
  if (isExecuting(current.execution))
    return { ...current, ...cancelled, execution: "STOPPING", lease: "stop", hasNextExecution: false };
  if (current.execution === "ENDED") return { ...unchanged(current), ...cancelled }; // the run waits for children
  return {
    ...ended(current, "CANCELLED"),
    ...cancelled,
    lease: current.execution === "OFFERED" ? "release" : "unchanged",
  };
}

/** Returns the end of a debug window. Its cause does not matter: the run's state and status are unchanged. */
const endDebugWindow = (current: LifecycleState): Next => ({ ...ended(current, "FAILED"), run: current.run });
const ended = (current: LifecycleState, outcome: Outcome): Next => ({
  ...current,
  execution: "ENDED",
  outcome,
  lease: "release",
  hasNextExecution: false,
});
const unchanged = (current: LifecycleState): Next => ({ ...current, lease: "unchanged", hasNextExecution: false });

/** Returns whether a worker is executing it. */
export const isExecuting = (state: ExecutionState): boolean => state === "CLAIMED" || state === "RUNNING";
/** Returns whether it is queued, offered, or being executed. */
export const isLive = (state: ExecutionState): boolean =>
  isExecuting(state) || state === "QUEUED" || state === "OFFERED";

const invalidTransition = (current: LifecycleState, change: Change): Error =>
  new Error(`${change.type} does not fit ${current.run}/${current.execution}`);
