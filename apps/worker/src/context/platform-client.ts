import type { JsonObject } from "@bufbuild/protobuf";

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
