import type { JsonObject } from "@bufbuild/protobuf";
import type { Clock } from "@millwright/clock";
import type { worker } from "@millwright/contracts";
import type { OutboundRule } from "@millwright/outbound";
import type { Logger } from "@millwright/telemetry";
import type { ParkedWorkspace } from "../state/parked-workspaces.ts";
import type { SandboxHost } from "../sandbox/spec.ts";

/** What the heartbeat says about an execution. */
export type ExecutionPhase = "SETUP" | "RUNNING" | "IDLE" | "DEBUG" | "STOPPING";

/**
 * Everything one execution may use of the worker; made by the supervisor, one per attempt.
 * `runExecution(ctx)` runs it to its end and never touches the lease, the spool or the session itself.
 */
export type ExecutionContext = {
  readonly assignment: worker.Assignment;
  /** Private directory (0700) of this execution and attempt; removed by the supervisor once every sandbox is gone. */
  readonly dir: string;
  /** Directory that outlives executions, for copies of repositories; absent = everything is fetched anew. */
  readonly cacheDir?: string;
  /**
   * Adds an event to the run. Order of calls = order of the run's events. Strings are masked (the assignment's secrets, the run token)
   * and a payload over 64 KiB is cut, marked `truncated: true`. Never throws for a lost lease: the event is dropped, the `signal` tells.
   */
  emit(kind: string, payload: JsonObject): void;
  /** A text with the same secrets replaced: what else leaves the worker for somebody who must not have them. */
  mask(text: string): string;
  /** Resolves when every event emitted so far is acknowledged (the write-ahead barrier before an effect). Rejects with `LeaseLost`. */
  flushed(): Promise<void>;
  /** A model is just saying this: told to those who watch, if it can be, and stored nowhere. */
  publishTextDelta(stepId: string, delta: string): void;
  /** A call of a model has ended, in one of a few ways; for metrics. */
  modelCalled(provider: string, outcome: string): void;
  readonly gate: OutboundGate;
  readonly platform: PlatformClient;
  readonly directives: ExecutionDirectives;
  /** Aborted on cancel, time limit or end of drain (reason `ExecutionCancelled`), and on lease loss (reason `LeaseLost`). */
  readonly signal: AbortSignal;
  phase(phase: ExecutionPhase): void;
  /** The workspace is saved, as it is now: it may be kept for the run's next execution when this one ends. */
  park(workspace: ParkedWorkspace): void;
  /** The workspace that this worker has kept, moved into `dir`, if it is the one to begin with; asked before anything is in it. Never rejects. */
  unpark(): Promise<ParkedWorkspace | undefined>;
  /**
   * Setup has failed: the platform is told so, and that what there is is kept for the debug window. Resolves to the signal that ends the window early (its reason
   * is for the run's events); undefined: nothing is to be kept. The result of the execution says it again when the window is over.
   */
  retain(result: ExecutionResult): Promise<AbortSignal | undefined>;
  /**
   * Tells the supervisor of a started sandbox, right after its start. The supervisor terminates and kills it on the cancel ladder and on
   * lease loss, and frees the slot only when `gone` has resolved for each. Several may be registered (the push sandbox too).
   */
  ownSandbox(sandbox: SandboxHandle): void;
  /** `isChosen`: configured, not only what `auto` came to. `host`: what the machine has for sandboxes; absent, nothing but the kind. */
  readonly sandbox: { readonly kind: "bwrap" | "none"; readonly isChosen?: boolean; readonly host?: SandboxHost };
  /** What the worker itself reaches at addresses that teams have set: models and code hosts. */
  readonly outbound: OutboundRule;
  /** Origin of the public REST API as people see it, for texts and links. */
  readonly publicUrl: string;
  readonly log: Logger;
  readonly clock: Clock;
};

/** A running sandbox as the supervisor sees it. */
export type SandboxHandle = {
  /** Host process id; with `none` also the id of the process group. Kept on disk so that the next worker kills what a SIGKILL left. */
  readonly pid: number;
  /** Stored with it: a variable in the environment of its processes, or of those with which all others end. */
  readonly mark?: string;
  /** Asks the processes inside to end (TERM). */
  terminate(): void;
  /** Kills everything inside, at once. */
  kill(): void;
  /** Resolves (never rejects) when no process of the sandbox is left. */
  readonly gone: Promise<void>;
};

/** Closed while the lease is not known to be ours; judged by both clocks at the moment of use (design: doors). */
export type OutboundGate = {
  /** Throws `OutboundGateClosed` (or `LeaseLost`). Call it directly before an outside effect. */
  assertOpen(): void;
  /** Waits until the lease is renewed. Rejects with the abort reason of `signal`. */
  whenOpen(): Promise<void>;
};

/** Directives arrive in order and once; those that come before a handler is set wait for it. */
export type ExecutionDirectives = {
  /** Ends the present turn, keeps the execution. Acknowledged when `handle` returns (or its promise resolves). */
  onInterrupt(handle: (turnId: string) => void | Promise<void>): void;
  /** A message for the agent. Not acknowledged until `ack(seq)`: call it when the message is in the event log. */
  onFollowup(handle: (message: worker.InputMessage, seq: bigint) => void): void;
  /** An idle execution shall end now. Acknowledged when `handle` returns. */
  onEndIdle(handle: () => void): void;
  ack(seq: bigint): void;
};

/** An event of the conversation so far, as `ReadHistory` tells it. */
export type HistoryEvent = {
  readonly seq: bigint;
  readonly kind: string;
  readonly payload: JsonObject;
  /** Seqs count per run. */
  readonly runUid: string;
  /** 0: not of an execution. */
  readonly executionId: bigint;
};

/** An artifact to register; once per `clientArtifactId`. */
export type NewArtifact = {
  readonly clientArtifactId: string;
  readonly artifactType: "PLAN" | "SCREENSHOT" | "FILE" | "EXTERNAL_REFERENCE";
  /** title, description, filename, filepath, mime_type, reference_type, url, metadata. */
  readonly data: JsonObject;
  readonly public?: boolean;
  /** Sent inline up to 256 KiB, else uploaded and committed. */
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

/** Tokens of one model call; an absent number was not measured. */
export type CallUsage = {
  readonly callId: string;
  readonly modelId: string;
  readonly usage: TokenCounts;
  /** The call was cut off, and some of the numbers are estimates by the length of its texts. */
  readonly isEstimated?: boolean;
};
/** A model call to come, in tokens at most. */
export type PlannedCall = { readonly modelId: string; readonly inputTokens: number; readonly outputTokens: number };
export type TokenCounts = {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly inputCacheReadTokens?: number;
  readonly inputCacheWriteTokens?: number;
};

/** Answer of the public REST API: any status; `body` is parsed JSON, or text where it is none. */
export type RestResponse = { readonly status: number; readonly headers: Headers; readonly body: unknown };

/**
 * The platform for this attempt. Each call waits for open doors, is retried with back-off while the platform is unavailable and the lease may
 * live, and rejects with the abort reason of `signal`. All are idempotent by their own keys. Other errors: `DomainError`.
 */
export type PlatformClient = {
  createArtifact(artifact: NewArtifact): Promise<{ artifactUid: string }>;
  openPullRequest(
    pullRequest: NewPullRequest,
  ): Promise<{ url: string; number: number; artifactUid: string; adopted: boolean }>;
  reportUsage(usage: CallUsage): Promise<void>;
  /** Whether `reserveCost` comes before each model call: the assignment said so, or the answer to a usage report since. */
  isCostLimited(): boolean;
  /** Sets the greatest cost of a model call aside, where the run has a cost limit or a budget covers it. `wait`: other runs may use up what is left; ask again. */
  reserveCost(call: PlannedCall): Promise<{ readonly outcome: string; readonly message: string }>;
  /** The whole conversation before this moment, earlier runs first, then this one with what lost attempts of its executions wrote; oldest first. */
  readHistory(): Promise<HistoryEvent[]>;
  /** Uploads a snapshot file; the key goes into the result, or into a `checkpoint` event. */
  putSnapshot(file: string): Promise<{ snapshotKey: string }>;
  /** Uploads what an agent program of others has written down of its session: the run's transcript. */
  putTranscript(content: Uint8Array): Promise<void>;
  /** Fetches a signed URL (snapshot, attachment) into a file. */
  download(url: string, file: string): Promise<void>;
  /**
   * The public REST API as the executing agent, with the present run token. `path` begins with "/api/v1/". A lost answer is retried for GET,
   * PUT, PATCH and DELETE, and for POST only with an `Idempotency-Key` header; a final answer of any status is returned.
   */
  rest(
    method: string,
    path: string,
    body?: JsonObject,
    headers?: Readonly<Record<string, string>>,
  ): Promise<RestResponse>;
};

/** How an execution ended. The supervisor flushes its events, then completes it with this. */
export type ExecutionResult = {
  readonly outcome: "DONE" | "FAILED" | "BLOCKED" | "WAITING" | "CANCELLED" | "ERROR";
  /** FAILED and ERROR: code of the public catalog (spec fields-runs §2.2). */
  readonly error?: {
    readonly code: string;
    readonly message: string;
    readonly retryable: boolean;
    readonly reason: string;
  };
  /** BLOCKED: what the agent asks; otherwise a closing word. */
  readonly message?: string;
  /** WAITING: empty `runUids` means all live children. */
  readonly waitFor?: { readonly policy: "all" | "any"; readonly runUids: readonly string[] };
  readonly snapshotKey?: string;
  /** There is no snapshot because the workspace is as its clones were. */
  readonly isWorkspaceUnchanged?: boolean;
};

/** Runs an execution to its end. May reject: with the abort reason, or with any error, which completes it as ERROR `internal_error`. */
export type RunExecution = (ctx: ExecutionContext) => Promise<ExecutionResult>;
