import type { PlatformClient } from "./platform-client.ts";
import type { OutboundGate } from "../egress/outbound-gate.ts";
import type { SandboxHandle } from "../sandbox/sandbox-handle.ts";
import type { JsonObject } from "@bufbuild/protobuf";
import type { Clock } from "@millwright/clock";
import type { worker } from "@millwright/contracts";
import type { OutboundRule } from "@millwright/outbound";
import type { Logger } from "@millwright/telemetry";
import type { ParkedWorkspace } from "../state/parked-workspaces.ts";
import type { SandboxHost } from "../sandbox/spec.ts";

/** The state of an execution in heartbeats. */
export type ExecutionPhase = "SETUP" | "RUNNING" | "IDLE" | "DEBUG" | "STOPPING";

/**
 * The interface between one execution and the worker. The worker creates one per attempt. `runExecution(ctx)` runs the
 * execution to its end and never accesses the lease, the spool or the session itself.
 */
export type ExecutionContext = {
  readonly assignment: worker.Assignment;
  /**
   * The private directory (0700) of this execution and attempt. The worker removes it after every sandbox has ended.
   */
  readonly dir: string;
  /** A directory for repository copies that outlives executions; absent: no cache. */
  readonly cacheDir?: string;
  /** A PEM file with the certificate authorities for hosts of repositories; absent: those of the machine. */
  readonly gitCaFile?: string | undefined;
  /**
   * Adds an event to the run, in call order. Strings are masked (the assignment's secrets, the run token), and a
   * payload over 64 KiB is truncated and marked `truncated: true`. Never throws for a lost lease: the event is dropped,
   * and `signal` is aborted.
   */
  emit(kind: string, payload: JsonObject): void;
  /** Returns a text with the same secrets replaced, for all other data that leaves the worker. */
  mask(text: string): string;
  /**
   * Resolves when every event emitted so far is acknowledged (the write-ahead barrier before an effect). Rejects with
   * `LeaseLost`.
   */
  flushed(): Promise<void>;
  /** Publishes a part of the model's text to live viewers. Best effort; it is not stored. */
  publishTextDelta(stepId: string, delta: string): void;
  /** Counts the outcome of a model call, for metrics. */
  modelCalled(provider: string, outcome: string): void;
  readonly gate: OutboundGate;
  readonly platform: PlatformClient;
  readonly directives: ExecutionDirectives;
  /**
   * Aborted on cancel, time limit or end of drain (reason `ExecutionCancelled`), and on lease loss (reason
   * `LeaseLost`).
   */
  readonly signal: AbortSignal;
  phase(phase: ExecutionPhase): void;
  /**
   * Marks the current workspace as saved. When this execution ends, the workspace may be retained for the run's next
   * one.
   */
  park(workspace: ParkedWorkspace): void;
  /**
   * Moves the workspace that this worker retained into `dir` if it matches the snapshot to start with. To be called
   * while `dir` is empty. Never rejects.
   */
  takeParked(): Promise<ParkedWorkspace | undefined>;
  /**
   * Reports a failed setup and that the workspace is retained for the debug window. Resolves to a signal that ends the
   * window early (its reason is for the run's events), or to undefined if nothing is to be retained. The execution
   * returns the same result again after the window.
   */
  retain(result: ExecutionResult): Promise<AbortSignal | undefined>;
  /**
   * Returns the means to save the workspace after `signal` was aborted. Undefined if the execution continues in another
   * attempt, which starts with the newest checkpoint: the lease is lost, or the worker stops.
   */
  lastSave(): LastSave | undefined;
  /**
   * Registers a sandbox directly after its start. The worker terminates and kills it on cancellation and on lease loss,
   * and frees the slot only when `gone` has resolved for each sandbox. Several may be registered, such as the push
   * sandbox.
   */
  ownSandbox(sandbox: SandboxHandle): void;
  /**
   * `isChosen`: configured explicitly, not resolved from `auto`. `host`: the machine's sandbox capabilities; absent:
   * only the kind is known.
   */
  readonly sandbox: { readonly kind: "bwrap" | "none"; readonly isChosen?: boolean; readonly host?: SandboxHost };
  /** The rule for the worker's own connections to addresses that teams configure: models and code hosts. */
  readonly outbound: OutboundRule;
  /** The public origin of the REST API, for texts and links. */
  readonly publicUrl: string;
  readonly log: Logger;
  readonly clock: Clock;
};

/** The means to save the workspace of an execution. */
export type LastSave = {
  /** Aborted when the time to save is over, and when the lease is lost. */
  readonly signal: AbortSignal;
  /** The gate and the retries of the platform client apply, with this `signal`. */
  readonly platform: Pick<PlatformClient, "putSnapshot">;
  /** Registers a sandbox of a platform script. SIGTERM and SIGKILL for the agent do not reach it. */
  ownSandbox(sandbox: SandboxHandle): void;
};

/** Directives are delivered once and in order. Those that arrive before a handler is set are queued. */
export type ExecutionDirectives = {
  /**
   * Sets the handler that ends the current turn and continues the execution. The directive is acknowledged when
   * `handle` returns or its promise resolves.
   */
  onInterrupt(handle: (turnId: string) => void | Promise<void>): void;
  /**
   * Sets the handler of a message for the agent. The message is not acknowledged until `ack(seq)`, which must be called
   * after the message is in the event log.
   */
  onFollowup(handle: (message: worker.InputMessage, seq: bigint) => void): void;
  /** Sets the handler that ends an idle execution. The directive is acknowledged when `handle` returns. */
  onEndIdle(handle: () => void): void;
  ack(seq: bigint): void;
};

/** How an execution ended. The worker flushes its events and then completes it with this result. */
export type ExecutionResult = {
  readonly outcome: "DONE" | "FAILED" | "BLOCKED" | "WAITING" | "CANCELLED" | "ERROR";
  /** FAILED and ERROR: a code of the public error catalog. */
  readonly error?: {
    readonly code: string;
    readonly message: string;
    readonly retryable: boolean;
    readonly reason: string;
  };
  /** BLOCKED: the agent's question; otherwise a closing message. */
  readonly message?: string;
  /** WAITING: empty `runUids` means all active children. */
  readonly waitFor?: { readonly policy: "all" | "any"; readonly runUids: readonly string[] };
  readonly snapshotKey?: string;
  /** Set if there is no snapshot because the workspace equals fresh clones. */
  readonly isWorkspaceUnchanged?: boolean;
};

/**
 * Runs an execution to its end. May reject with the abort reason, or with any other error, which completes it as ERROR
 * `internal_error`.
 */
export type RunExecution = (ctx: ExecutionContext) => Promise<ExecutionResult>;
