import type { RunUid } from "@millwright/ids";
import type { NewRunEvent } from "./run-events.ts";
import type { Life, Next } from "./run-state.ts";
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
  /** The agent started in an earlier attempt, which was interrupted. */
  readonly wasStarted?: boolean;
  readonly laneId: number;
  /** Its client executes it: it uses no capacity. */
  readonly isLocal?: boolean;
  readonly workerHost?: string;
  /** W3C trace context of what queued it. */
  readonly traceparent?: string;
  /** Who holds it, or has it on offer; times are judged by the database's clock. */
  readonly lease?: LockedLease;
  /** Its debug window is still there, but has lost its worker or is past its end: the reaper has not closed it yet. */
  readonly staleWindow?: "worker_lost" | "window_over";
};

export type LockedLease = {
  readonly sessionUid: string;
  /** Had it taken by another machine. */
  readonly dispatcherUid?: string;
  readonly attempt: number;
  readonly isAccepted: boolean;
  readonly isOver: boolean;
  /** Until it ends unless it is renewed; negative afterwards. */
  readonly leftMs: number;
};

export type Wait = { readonly policy: WaitPolicy; readonly runUids: readonly string[] };

/** A run that is locked by this transaction, with the execution that is meant (the newest, unless another was named). */
export type LockedRun = {
  readonly uid: RunUid;
  /** Raised by every change. */
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
  readonly execution: LockedExecution;
};

export type Actor = { readonly type: string; readonly uid: string };

/** On whose behalf a change is made, for the lifecycle events. */
export type ChangeContext = {
  readonly actor: Actor;
  readonly requestId: string;
  readonly cause?: string;
  /** W3C trace context for the events, where it is not that of the present scope. */
  readonly traceparent?: string | undefined;
};

export type NewDirective = {
  readonly kind: "cancel" | "interrupt" | "followup" | "end_idle" | "drain";
  readonly payload: JsonObject;
};

/** One run's change, to be saved whole. */
export type RunChange = {
  readonly run: LockedRun;
  readonly next: Next;
  readonly events: readonly NewRunEvent[];
  /** For the worker that holds the execution. */
  readonly directive?: NewDirective;
  /** The agent session that began. */
  readonly sessionUid?: string;
  /** The workspace saved at the end of the execution. */
  readonly snapshotKey?: string;
  /** The execution ends with its workspace as its clones were. */
  readonly isWorkspaceUnchanged?: boolean;
  readonly submittedPrompt?: string;
  /** For so long the worker of an execution that ends keeps its workspace. */
  readonly parkedMs?: number;
  /** How long the worker keeps what a failed setup has left. */
  readonly debugWindowMs?: number;
  /** Why follow-ups that the execution was given, and did not hand over, are given up. */
  readonly undelivered?: string;
  /** null: the wait is over. */
  readonly wait?: Wait | null;
};

export const lifeOf = (run: LockedRun): Life => ({
  run: run.state,
  execution: run.execution.state,
  setupLosses: run.execution.setupLosses,
  runLosses: run.execution.runLosses,
});

/** The platform's own acts: expiry, limits. */
export const PLATFORM_ACTOR: Actor = { type: "service", uid: "orchestrator" };

/**
 * What workers and the platform itself do to a run goes on with the trace that its execution came from; what people do has a trace of
 * its own (undefined here).
 */
export const traceOfRun = (
  { execution }: Pick<LockedRun, "execution">,
  { actor }: Pick<ChangeContext, "actor">,
): string | undefined =>
  actor.type === "worker" || (actor.type === PLATFORM_ACTOR.type && actor.uid === PLATFORM_ACTOR.uid)
    ? execution.traceparent
    : undefined;
