import type { PullRequestSize } from "../../catalog/domain/pull-request.ts";
/** The dimensions by which costs of a run are grouped. Empty: none. */
export type CostOwner = {
  readonly runUid: string;
  readonly rootRunUid: string;
  /** Factory, source and creator are those of the root run. */
  readonly factoryUid: string;
  readonly source: string;
  readonly creatorType: string;
  readonly creatorUid: string;
  readonly agentUid: string;
  readonly modelId: string;
};

/** One metered model call. Absent count: not measured. Absent cost: the price is unknown. */
export type ModelCallFacts = {
  readonly callId: string;
  readonly recordedAt: Date;
  readonly modelId: string;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly cacheReadTokens?: number;
  readonly cacheWriteTokens?: number;
  readonly costMicros?: bigint;
  readonly priceVersion?: number;
};

/** The interval in which one attempt used a sandbox. 0 vCPUs or GB: not limited. */
export type ComputeInterval = {
  readonly executionId: number;
  readonly attempt: number;
  readonly startedAt: Date;
  readonly endedAt: Date;
  readonly vcpus: number;
  readonly memoryGb: number;
};

/** A pull request of a run. If only an artifact names it, kind, repository and title are empty, and the number is 0. */
export type ProducedPullRequest = Partial<PullRequestSize> & {
  readonly url: string;
  readonly kind: string;
  readonly repository: string;
  readonly number: number;
  readonly title: string;
  readonly createdAt: Date;
};

/** A run without its usage and results. Empty: none or unknown. */
export type RunSnapshot = {
  readonly uid: string;
  readonly ownerType: string;
  readonly ownerUid: string;
  readonly rootRunUid: string;
  readonly parentRunUid: string;
  readonly conversationUid: string;
  readonly createdAt: Date;
  readonly finishedAt?: Date;
  readonly source: string;
  readonly state: string;
  readonly version: number;
  readonly agentUid: string;
  readonly agentName: string;
  readonly agentType: string;
  readonly modelId: string;
  readonly harness: string;
  readonly costOwner: CostOwner;
  readonly inferenceOwner: CostOwner;
};

/** All data of a run from which metrics are computed. */
export type RunFacts = RunSnapshot & {
  readonly modelCalls: readonly ModelCallFacts[];
  readonly computeIntervals: readonly ComputeInterval[];
  readonly pullRequests: readonly ProducedPullRequest[];
  readonly personFollowUps: number;
};

/**
 * Returns each pull request once, with all that is known of it and the earliest creation time. A pull request that was
 * opened for the run and is also named by an artifact counts as one.
 */
export function distinctPullRequests(pulls: readonly ProducedPullRequest[]): ProducedPullRequest[] {
  const byUrl = new Map<string, ProducedPullRequest>();
  for (const pull of pulls) {
    const key = pull.url
      .toLowerCase()
      .replace(/[?#].*$/s, "")
      .replace(/\/+$/, "");
    const known = byUrl.get(key);
    byUrl.set(key, known ? merged(known, pull) : pull);
  }
  return [...byUrl.values()];
}

const merged = (a: ProducedPullRequest, b: ProducedPullRequest): ProducedPullRequest => ({
  ...(a.kind === "" && b.kind !== "" ? b : a),
  createdAt: a.createdAt < b.createdAt ? a.createdAt : b.createdAt,
});
