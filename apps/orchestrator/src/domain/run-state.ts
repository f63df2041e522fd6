import { DomainError } from "@millwright/errors";
import type { ExecutionState, Outcome, RunState, RunStatus, TerminalState } from "./run.ts";
import { isTerminal } from "./run.ts";
import { RUN_LOSSES_MAX, SETUP_LOSSES_MAX } from "./timings.ts";

/** As much of a run and of one of its executions as the rules need. */
export type Life = {
  readonly run: RunState;
  readonly execution: ExecutionState;
  /** Workers lost in this execution before, and after, the agent started. */
  readonly setupLosses: number;
  readonly runLosses: number;
};

/** What becomes of an execution whose worker is lost while its agent works. */
export const LOSS_POLICIES = ["resume", "fail"] as const;
export type LossPolicy = (typeof LOSS_POLICIES)[number];

/** What may happen to it. */
export type Change =
  | { readonly type: "accept" }
  | { readonly type: "give_back" }
  /** A worker that stops returns its lease. No loss is counted. */
  | { readonly type: "return" }
  | { readonly type: "agent_started" }
  /** `isWanted`: something is there for a further execution (unseen follow-ups, children that have all ended). */
  | { readonly type: "complete"; readonly outcome: Outcome; readonly status?: RunStatus; readonly isWanted: boolean }
  /** Its setup has failed; the worker keeps what there is for the debug window. */
  | { readonly type: "retain"; readonly status: RunStatus }
  /** The lease ran out, or the grace of a stopping execution did. `policy` absent: resume; "end": nobody else can go on with it. */
  | { readonly type: "lose"; readonly policy?: LossPolicy | "end" }
  /** `isForced`: a tree is cancelled, so an open offer does not protect the run. */
  | {
      readonly type: "cancel";
      readonly isForced: boolean;
      readonly status: RunStatus;
      /** Of a refusal, in seconds. */ readonly retryAfter?: number;
    }
  /** The execution broke a limit of the platform. */
  | { readonly type: "stop"; readonly state: "FAILED" | "ERROR"; readonly status: RunStatus }
  /** A message for a run without a live execution, or the end of the children it waits for. */
  | { readonly type: "wake" };

/** What becomes of it. */
export type Next = Life & {
  /** Set when the execution ends. */
  readonly outcome?: Outcome;
  /** keep: untouched · hold: the offer becomes a lease · stop: until the grace is over · drop: gone, and its capacity is free. */
  readonly lease: "keep" | "hold" | "stop" | "drop";
  /** A further execution of the run is queued. */
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
 * The life cycle of a run: every change of its state, in one place. The bulk form of an offer (QUEUED/QUEUED →
 * PENDING/OFFERED, attempt raised) is the claim's SQL.
 *
 * Errors: run_already_finished (invalid_argument), run_pending (conflict, retryable). A change that does not fit the state is a
 * programming error: callers check leases and attempts first.
 * Source: fields-runs §10.
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
  // The run was decided without this execution; its end only frees what it holds.
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
    "The worker that held this run was lost while the agent was working, and its configuration says that it shall not be resumed.",
  errorCode: "resource_unavailable",
  retryable: true,
};

const CLIENT_LOST: RunStatus = {
  message: "The client that executed this run is not heard of any more.",
  errorCode: "agent_process_failed",
  retryable: false,
};

const WORKERS_LOST: RunStatus = {
  message: "The workers that held this run were lost, repeatedly.",
  errorCode: "resource_unavailable",
  retryable: true,
};

function cancel(life: Life, { isForced, status, retryAfter = 1 }: Change & { type: "cancel" }): Next {
  if (isTerminal(life.run)) {
    throw new DomainError({
      kind: "invalid_argument",
      reason: "run_already_finished",
      message: "The run has already finished.",
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
  if (life.execution === "ENDED") return { ...unchanged(life), ...cancelled }; // it waited for children
  return { ...ended(life, "CANCELLED"), ...cancelled, lease: life.execution === "OFFERED" ? "drop" : "keep" };
}

/** However it comes about: what the run says of itself stays. */
const endOfWindow = (life: Life): Next => ({ ...ended(life, "FAILED"), run: life.run });
const ended = (life: Life, outcome: Outcome): Next => ({
  ...life,
  execution: "ENDED",
  outcome,
  lease: "drop",
  isFollowed: false,
});
const unchanged = (life: Life): Next => ({ ...life, lease: "keep", isFollowed: false });

/** A worker works on it. */
export const isHeld = (state: ExecutionState): boolean => state === "CLAIMED" || state === "RUNNING";
/** It is, or will be, worked on. */
export const isLive = (state: ExecutionState): boolean => isHeld(state) || state === "QUEUED" || state === "OFFERED";

const misfit = (life: Life, change: Change): Error =>
  new Error(`${change.type} does not fit ${life.run}/${life.execution}`);
