/** A run, as costs are grouped by it. Empty: none. */
export type CostOwner = {
  readonly runUid: string;
  readonly rootRunUid: string;
  /** Factory, source and creator are those of the root. */
  readonly factoryUid: string;
  readonly source: string;
  readonly creatorType: string;
  readonly creatorUid: string;
  readonly agentUid: string;
  readonly modelId: string;
};

/** One metered model call. An absent count was not measured; an absent cost has no known price. */
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

/** The time that one attempt used a sandbox. A shape of 0 is not limited. */
export type ComputeInterval = {
  readonly executionId: number;
  readonly attempt: number;
  readonly startedAt: Date;
  readonly endedAt: Date;
  readonly vcpus: number;
  readonly memoryGb: number;
};

/** Lines, files and commits that a pull request changes. */
export type PullRequestSize = {
  readonly additions: number;
  readonly deletions: number;
  readonly changedFiles: number;
  readonly numCommits: number;
};

/** A pull request of a run. Kind, repository and title are empty, and the number is 0, where only an artifact names it. */
export type ProducedPullRequest = Partial<PullRequestSize> & {
  readonly url: string;
  readonly kind: string;
  readonly repository: string;
  readonly number: number;
  readonly title: string;
  readonly createdAt: Date;
};

/** A run without what it used and produced. Empty: none, or not known. */
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

/** Everything that metrics are made of. */
export type RunFacts = RunSnapshot & {
  readonly modelCalls: readonly ModelCallFacts[];
  readonly computeIntervals: readonly ComputeInterval[];
  readonly pullRequests: readonly ProducedPullRequest[];
  readonly personFollowUps: number;
};

/**
 * Returns each pull request once, with what is known of it and the time at which it was first seen. A pull request that was opened for the run and
 * also named by an artifact is the same.
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
