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

/** A running sandbox in the form that the worker requires. */
export type SandboxHandle = {
  /**
   * The host process id; with `none` also the id of the process group. It is stored on disk so that the next worker can
   * kill what remains after a SIGKILL of this one.
   */
  readonly pid: number;
  /**
   * An environment variable, stored with the process id, of all its processes or of those whose exit ends all others.
   */
  readonly mark?: string;
  /** Sends SIGTERM to the processes inside. */
  terminate(): void;
  /** Kills everything inside immediately. */
  kill(): void;
  /** Resolves (never rejects) when no process of the sandbox remains. */
  readonly gone: Promise<void>;
};

/**
 * The gate for external effects. It is closed while the lease is not known to be valid, which is evaluated by both
 * clocks at the time of use.
 */
export type OutboundGate = {
  /** Throws `OutboundGateClosed` (or `LeaseLost`). To be called directly before an external effect. */
  assertOpen(): void;
  /** Waits until the lease is renewed. Rejects with the abort reason of `signal`. */
  whenOpen(): Promise<void>;
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

/** An event of the conversation, as returned by `ReadHistory`. */
export type HistoryEvent = {
  readonly seq: bigint;
  readonly kind: string;
  readonly payload: JsonObject;
  /** The run of the event; `seq` counts per run. */
  readonly runUid: string;
  /** 0: not part of an execution. */
  readonly executionId: bigint;
};

/** An artifact to register. It is created once per `clientArtifactId`. */
export type NewArtifact = {
  readonly clientArtifactId: string;
  readonly artifactType: "PLAN" | "SCREENSHOT" | "FILE" | "EXTERNAL_REFERENCE";
  /** title, description, filename, filepath, mime_type, reference_type, url, metadata. */
  readonly data: JsonObject;
  readonly public?: boolean;
  /** Sent inline up to 256 KiB, otherwise uploaded and committed. */
  readonly content?: Uint8Array;
};

/** The pull request to open or adopt. */
export type NewPullRequest = {
  readonly owner: string;
  readonly repo: string;
  readonly headBranch: string;
  readonly headSha: string;
  readonly baseBranch: string;
  readonly title: string;
  readonly body: string;
};

/** The tokens of one model call; an absent number was not measured. */
export type CallUsage = {
  readonly callId: string;
  readonly modelId: string;
  readonly usage: TokenCounts;
  /** Set if the call was cut off and some of the numbers are estimated from the length of its texts. */
  readonly isEstimated?: boolean;
};
/** The maximum tokens of a planned model call. */
export type PlannedCall = { readonly modelId: string; readonly inputTokens: number; readonly outputTokens: number };
export type TokenCounts = {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly inputCacheReadTokens?: number;
  readonly inputCacheWriteTokens?: number;
  /** The cost of the call as stated by the provider. */
  readonly costMicros?: number;
};

/** A response of the public REST API with any status. `body` is parsed JSON, or the text if it is not JSON. */
export type RestResponse = { readonly status: number; readonly headers: Headers; readonly body: unknown };

/**
 * The platform client of this attempt. Each call waits for the outbound gate, is retried with back-off while the
 * platform is unavailable and the lease may be valid, and rejects with the abort reason of `signal`. All calls are
 * idempotent by their own keys. Other errors: `DomainError`.
 */
export type PlatformClient = {
  createArtifact(artifact: NewArtifact): Promise<{ artifactUid: string }>;
  openPullRequest(
    pullRequest: NewPullRequest,
  ): Promise<{ url: string; number: number; artifactUid: string; adopted: boolean }>;
  reportUsage(usage: CallUsage): Promise<void>;
  /**
   * Returns whether each model call requires `reserveCost` first: set by the assignment, or by a later response to a
   * usage report.
   */
  isCostLimited(): boolean;
  /**
   * Reserves the maximum cost of a model call if the run has a cost limit or a budget covers it. `wait`: other runs may
   * release budget; retry.
   */
  reserveCost(call: PlannedCall): Promise<{ readonly outcome: string; readonly message: string }>;
  /**
   * Returns the conversation so far, oldest first: earlier runs, followed by this run including lost attempts of its
   * executions.
   */
  readHistory(): Promise<HistoryEvent[]>;
  /** Uploads a snapshot file. The caller puts the key into the result or into a `checkpoint` event. */
  putSnapshot(file: string): Promise<{ snapshotKey: string }>;
  /** Uploads an agent program's own session record as the run's transcript. */
  putTranscript(content: Uint8Array): Promise<void>;
  /** Fetches a signed URL (snapshot, attachment) into a file. */
  download(url: string, file: string): Promise<void>;
  /**
   * Calls the public REST API as the executing agent, with the current run token. `path` begins with "/api/v1/". After
   * a lost response, the call is retried for GET, PUT, PATCH and DELETE, and for POST only with an `Idempotency-Key`
   * header. A final response of any status is returned.
   */
  rest(
    method: string,
    path: string,
    body?: JsonObject,
    headers?: Readonly<Record<string, string>>,
  ): Promise<RestResponse>;
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
