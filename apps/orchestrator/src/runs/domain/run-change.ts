import type { RunUid } from "@millwright/ids";
import type { NewRunEvent } from "./run-events.ts";
import type { LifecycleState, Next } from "./run-state.ts";
import type { ExecutionState, JsonObject, Owner, RunState } from "./run.ts";
import type { WaitPolicy } from "./wait.ts";

/** An execution whose run is locked by this transaction. */
export type LockedExecution = {
  readonly id: number;
  readonly seq: number;
  readonly state: ExecutionState;
  readonly attempt: number;
  readonly outcome?: string;
  readonly setupLosses: number;
  readonly runLosses: number;
  /** True if the agent started in an earlier attempt, which was interrupted. */
  readonly wasStarted?: boolean;
  readonly laneId: number;
  /** True if a client executes it. Such an execution uses no capacity. */
  readonly isLocal?: boolean;
  readonly workerHost?: string;
  /** W3C trace context of the request that queued it. */
  readonly traceparent?: string;
  /** The session that owns it or to which it is offered. Expiry is evaluated by the database's clock. */
  readonly lease?: LockedLease;
  /** The greatest `clientSeq` that was stored for the attempt; absent if the attempt does not own the event stream. */
  readonly ackedClientSeq?: number;
  /** True if follow-ups were sent to it as directives that its agent has not received. */
  readonly hasUndeliveredDirectives: boolean;
  /** Set if its debug window has lost its worker or has expired, and the reaper has not closed the window yet. */
  readonly staleWindow?: "worker_lost" | "window_expired";
};

export type LockedLease = {
  readonly sessionUid: string;
  /** The session that dispatched it to another machine. */
  readonly dispatcherUid?: string;
  readonly attempt: number;
  readonly isAccepted: boolean;
  /** True if it, its offer or its grace period has expired. */
  readonly isExpired: boolean;
  /** Milliseconds until it expires unless it is renewed; negative after expiry. */
  readonly leftMs: number;
  /**
   * Milliseconds since it has expired, or would have without its extension after a pause of the reaper; 0 before. Its
   * worker has renewed it at no time since.
   */
  readonly lapsedMs: number;
};

export type Wait = { readonly policy: WaitPolicy; readonly runUids: readonly string[] };

/** A run that is locked by this transaction, with one execution: the newest, unless another was named. */
export type LockedRun = {
  readonly uid: RunUid;
  /** Incremented by every change. */
  readonly version: number;
  readonly rootRunUid: RunUid;
  readonly parentRunUid?: RunUid;
  readonly owner: Owner;
  readonly agentUid?: string;
  readonly factoryUid?: string;
  readonly conversationUid: string;
  readonly depth: number;
  readonly title: string;
  /** RunSourceType. */
  readonly source: string;
  readonly state: RunState;
  readonly statusMessage?: string;
  readonly executionLocation: "REMOTE" | "LOCAL";
  readonly submittedPrompt?: string;
  readonly hasStarted: boolean;
  readonly wait?: Wait;
  /** True if there are follow-ups that the agent has not received and that are not undeliverable. */
  readonly hasUndeliveredFollowups: boolean;
  readonly execution: LockedExecution;
};

/** The run of an execution and its parent, which never change. */
export type RunOfExecution = { readonly uid: RunUid; readonly parentRunUid?: RunUid };

export type Actor = { readonly type: string; readonly uid: string };

/** The actor and the request of a change, for its lifecycle events. */
export type ChangeContext = {
  readonly actor: Actor;
  readonly requestId: string;
  readonly cause?: string;
  /** W3C trace context of the events, if it is not that of the current scope. */
  readonly traceparent?: string | undefined;
};

export type NewDirective = {
  readonly kind: "cancel" | "interrupt" | "followup" | "end_idle" | "drain";
  readonly payload: JsonObject;
};

/** The change of one run, saved as a whole. */
export type RunChange = {
  readonly run: LockedRun;
  readonly next: Next;
  readonly events: readonly NewRunEvent[];
  /** Directive to the worker that owns the execution. */
  readonly directive?: NewDirective;
  /** The agent session that started. */
  readonly sessionUid?: string;
  /** Blob key of the workspace saved at the end of the execution. */
  readonly snapshotKey?: string;
  /** True if the workspace of the ended execution equals its clones. */
  readonly isWorkspaceUnchanged?: boolean;
  readonly submittedPrompt?: string;
  /** How long the worker retains the workspace of the ended execution. */
  readonly parkedMs?: number;
  /** How long the worker retains the workspace of a failed setup. */
  readonly debugWindowMs?: number;
  /** Milliseconds since the end of an attempt whose worker was lost. They count neither as run time nor as compute. */
  readonly lapsedMs?: number;
  /** Why follow-ups that the execution received, and did not deliver to the agent, become undeliverable. */
  readonly undelivered?: string;
  /** null: the wait has ended. */
  readonly wait?: Wait | null;
};

export const lifecycleOf = (run: LockedRun): LifecycleState => ({
  run: run.state,
  execution: run.execution.state,
  setupLosses: run.execution.setupLosses,
  runLosses: run.execution.runLosses,
});

/**
 * Whether a change ends an attempt that a worker had accepted. An attempt that its client executes uses no sandbox of
 * the platform, so it does not count.
 */
export const endsAttempt = ({ run: { execution }, next }: RunChange): boolean =>
  next.lease === "release" && execution.lease?.isAccepted === true && !execution.isLocal;

/** Whether the ending attempt was dispatched and no machine has taken it over, so that no sandbox ran yet. */
export const isWaitingForMachine = ({ run: { execution } }: RunChange): boolean =>
  execution.lease?.dispatcherUid !== undefined && execution.lease.dispatcherUid === execution.lease.sessionUid;

/** The actor of the platform's own changes: expiry and limits. */
export const PLATFORM_ACTOR: Actor = { type: "service", uid: "orchestrator" };

/**
 * Returns the trace that a change belongs to. Changes by workers and by the platform itself continue the trace of their
 * execution. Changes by users have a trace of their own (undefined here).
 */
export const traceOfRun = (
  { execution }: Pick<LockedRun, "execution">,
  { actor }: Pick<ChangeContext, "actor">,
): string | undefined =>
  actor.type === "worker" || (actor.type === PLATFORM_ACTOR.type && actor.uid === PLATFORM_ACTOR.uid)
    ? execution.traceparent
    : undefined;
