import { DomainError } from "@millwright/errors";
import type { LossPolicy } from "../../catalog/domain/agent-config.ts";
import type { ExecutionState, Outcome, RunState, RunStatus, TerminalState } from "./run.ts";
import { isTerminal } from "./run.ts";
import { RUN_LOSSES_MAX, SETUP_LOSSES_MAX } from "./timings.ts";

/** The state of a run and of one of its executions that the transitions depend on. */
export type Life = {
  readonly run: RunState;
  readonly execution: ExecutionState;
  /** Numbers of workers lost in this execution before and after the agent started. */
  readonly setupLosses: number;
  readonly runLosses: number;
};

/** A change of a run and one of its executions. */
export type Change =
  | { readonly type: "accept" }
  | { readonly type: "give_back" }
  /** A stopping worker returns its lease. No loss is counted. */
  | { readonly type: "return" }
  | { readonly type: "agent_started" }
  /**
   * `isWanted`: a further execution is needed (follow-ups that were not delivered, or awaited children that have all
   * ended).
   */
  | { readonly type: "complete"; readonly outcome: Outcome; readonly status?: RunStatus; readonly isWanted: boolean }
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
export type Next = Life & {
  /** Set when the execution ends. */
  readonly outcome?: Outcome;
  /**
   * keep: unchanged · hold: the offer becomes a lease · stop: the lease ends after the grace period · drop: the lease
   * is deleted and its capacity released.
   */
  readonly lease: "keep" | "hold" | "stop" | "drop";
  /** True if a further execution of the run is queued. */
  readonly isFollowed: boolean;
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
export function transition(life: Life, change: Change): Next {
  switch (change.type) {
    case "accept":
      if (life.execution !== "OFFERED") throw misfit(life, change);
      return { ...life, run: "CLAIMED", execution: "CLAIMED", lease: "hold", isFollowed: false };
    case "give_back":
      if (life.execution !== "OFFERED") throw misfit(life, change);
      return { ...life, run: "QUEUED", execution: "QUEUED", lease: "drop", isFollowed: false };
    case "return":
      if (!isHeld(life.execution)) throw misfit(life, change);
      return requeued(life);
    case "agent_started":
      if (life.execution !== "CLAIMED") return unchanged(life);
      return { ...life, run: "INPROGRESS", execution: "RUNNING", lease: "keep", isFollowed: false, status: null };
    case "complete":
      return complete(life, change);
    case "retain":
      if (life.execution !== "CLAIMED") throw misfit(life, change);
      return { ...life, run: "FAILED", execution: "DEBUG", lease: "keep", isFollowed: false, status: change.status };
    case "lose":
      return lose(life, change.policy ?? "resume");
    case "cancel":
      return cancel(life, change);
    case "stop":
      if (!isHeld(life.execution)) throw misfit(life, change);
      return {
        ...life,
        run: change.state,
        execution: "STOPPING",
        lease: "stop",
        isFollowed: false,
        status: change.status,
      };
    case "wake":
      if (isLive(life.execution) || life.execution === "DEBUG") throw misfit(life, change);
      return { ...life, run: "QUEUED", lease: "keep", isFollowed: true, status: null };
    default:
      return change satisfies never;
  }
}

function complete(life: Life, change: Change & { type: "complete" }): Next {
  const { outcome, isWanted } = change;
  // The run's state was decided without this execution, so its end only releases its lease and capacity.
  if (life.execution === "STOPPING") return { ...ended(life, "CANCELLED"), run: life.run };
  if (life.execution === "DEBUG") return endOfWindow(life);
  if (!isHeld(life.execution)) throw misfit(life, change);
  if (isWanted && outcome !== "CANCELLED")
    return { ...ended(life, outcome), run: "QUEUED", isFollowed: true, status: null };
  if (outcome === "WAITING") return { ...ended(life, outcome), run: "INPROGRESS", status: change.status ?? null };
  return { ...ended(life, outcome), run: OUTCOME_STATES[outcome], status: change.status ?? null };
}

function lose(life: Life, policy: LossPolicy | "end"): Next {
  switch (life.execution) {
    case "OFFERED":
      return { ...life, run: "QUEUED", execution: "QUEUED", lease: "drop", isFollowed: false };
    case "CLAIMED":
      return restart({ ...life, setupLosses: life.setupLosses + 1 }, life.setupLosses < SETUP_LOSSES_MAX);
    case "RUNNING":
      if (policy !== "resume")
        return {
          ...ended({ ...life, runLosses: life.runLosses + 1 }, "ERROR"),
          run: "ERROR",
          status: policy === "end" ? CLIENT_LOST : WORKER_LOST,
        };
      return restart({ ...life, runLosses: life.runLosses + 1 }, life.runLosses < RUN_LOSSES_MAX);
    case "STOPPING":
      return { ...ended(life, "CANCELLED"), run: life.run };
    case "DEBUG":
      return endOfWindow(life);
    default:
      throw misfit(life, { type: "lose" });
  }
}

function restart(life: Life, isAllowed: boolean): Next {
  if (isAllowed) return requeued(life);
  return { ...ended(life, "ERROR"), run: "ERROR", status: WORKERS_LOST };
}

const requeued = (life: Life): Next => ({
  ...life,
  run: "QUEUED",
  execution: "QUEUED",
  lease: "drop",
  isFollowed: false,
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

function cancel(life: Life, { isForced, status, retryAfter = 1 }: Change & { type: "cancel" }): Next {
  if (isTerminal(life.run)) {
    throw new DomainError({
      kind: "invalid_argument",
      reason: "run_already_finished",
      message: "The run has already finished. Retry it, or send a follow-up, to continue its work.",
    });
  }
  if (life.run === "PENDING" && !isForced) {
    throw new DomainError({
      kind: "conflict",
      reason: "run_pending",
      retryable: true,
      retryAfterSeconds: retryAfter,
      message: `The run is being assigned to a worker. Retry after ${retryAfter} s.`,
    });
  }
  const cancelled = { run: "CANCELLED", status } as const;
  if (isHeld(life.execution)) return { ...life, ...cancelled, execution: "STOPPING", lease: "stop", isFollowed: false };
  if (life.execution === "ENDED") return { ...unchanged(life), ...cancelled }; // the run waits for children
  return { ...ended(life, "CANCELLED"), ...cancelled, lease: life.execution === "OFFERED" ? "drop" : "keep" };
}

/** Returns the end of a debug window. Its cause does not matter: the run's state and status are unchanged. */
const endOfWindow = (life: Life): Next => ({ ...ended(life, "FAILED"), run: life.run });
const ended = (life: Life, outcome: Outcome): Next => ({
  ...life,
  execution: "ENDED",
  outcome,
  lease: "drop",
  isFollowed: false,
});
const unchanged = (life: Life): Next => ({ ...life, lease: "keep", isFollowed: false });

/** Returns whether a worker is executing it. */
export const isHeld = (state: ExecutionState): boolean => state === "CLAIMED" || state === "RUNNING";
/** Returns whether it is queued, offered, or being executed. */
export const isLive = (state: ExecutionState): boolean => isHeld(state) || state === "QUEUED" || state === "OFFERED";

const misfit = (life: Life, change: Change): Error =>
  new Error(`${change.type} does not fit ${life.run}/${life.execution}`);
