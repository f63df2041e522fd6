import { urlKey } from "./url-key.ts";

/** A run, as costs are grouped by it. Source, creator and factory are those of its root. */
export type CostOwner = {
  readonly runUid: string;
  readonly rootRunUid: string;
  readonly factoryUid: string;
  readonly source: string;
  readonly creatorType: string;
  readonly creatorUid: string;
  readonly agentUid: string;
  readonly modelId: string;
};

/** Absent tokens: the provider did not report usage. Absent cost: not priced. */
export type ModelCall = {
  readonly callId: string;
  readonly recordedAt: Date;
  readonly modelId: string;
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly cacheReadTokens?: number | undefined;
  readonly cacheWriteTokens?: number | undefined;
  readonly costMicros?: bigint | undefined;
  readonly priceVersion?: number | undefined;
};

/** `vcpus` and `memoryGb`: 0 = not limited, so not known. */
export type ComputeInterval = {
  readonly executionId: string;
  readonly attempt: number;
  readonly startedAt: Date;
  readonly endedAt: Date;
  readonly vcpus: number;
  readonly memoryGb: number;
};

export type ProducedPullRequest = {
  readonly url: string;
  readonly urlKey: string;
  readonly provider: string;
  readonly repoFullName: string;
  readonly number: number;
  readonly title: string;
  readonly createdAt: Date;
  readonly additions?: number | undefined;
  readonly deletions?: number | undefined;
  readonly changedFiles?: number | undefined;
  readonly numCommits?: number | undefined;
};

/** All facts of a run of a factory at the time of the read. */
export type RunSnapshot = {
  readonly uid: string;
  readonly teamUid: string;
  readonly parentRunUid: string | undefined;
  readonly conversationUid: string;
  readonly createdAt: Date;
  readonly finishedAt: Date | undefined;
  readonly source: string;
  readonly state: string;
  /** Raised by every change of the run, but not by its usage. */
  readonly version: bigint;
  readonly agentName: string;
  readonly agentType: string;
  readonly harness: string;
  /** The run itself. */
  readonly costOwner: CostOwner;
  readonly inferenceOwner: CostOwner;
  readonly modelCalls: readonly ModelCall[];
  readonly computeIntervals: readonly ComputeInterval[];
  readonly pullRequests: readonly ProducedPullRequest[];
  readonly personFollowUps: number;
};

/** Usage of a run in progress changes without an event. */
const IN_PROGRESS_MS = 60_000;
/** Usage that is recorded after the end of a run has arrived by then. */
const AFTER_END_MS = 120_000;
/** Before a worker has claimed a run nothing changes without an event. */
const WAITING_STATES: ReadonlySet<string> = new Set(["QUEUED", "PENDING"]);

type Phase = Pick<RunSnapshot, "state" | "finishedAt">;

/**
 * Returns when a run that was read at `now` must be read again without an event; undefined: never. `timeScale` divides
 * every wait.
 */
export function nextReadAt({ state, finishedAt }: Phase, now: Date, timeScale = 1): Date | undefined {
  if (finishedAt === undefined)
    return WAITING_STATES.has(state) ? undefined : new Date(now.getTime() + IN_PROGRESS_MS / timeScale);
  const lastReadAt = new Date(finishedAt.getTime() + AFTER_END_MS / timeScale);
  return lastReadAt > now ? lastReadAt : undefined;
}

const PULL_REQUEST_URL = /^(?:[a-z]+:\/\/)?[^/]+\/(.+?)\/(?:-\/)?(pulls?|merge_requests)\/(\d{1,9})/i;
const PROVIDERS: Readonly<Record<string, string>> = { github: "GITHUB", gitlab: "GITLAB", local: "LOCAL" };

/** What a run reports of a pull request. Empty `codeHostKind` and `repository`, and number 0: not known. */
export type ReportedPullRequest = Omit<ProducedPullRequest, "urlKey" | "provider" | "repoFullName"> & {
  readonly codeHostKind: string;
  readonly repository: string;
};

/** Returns the pull request under its key. Values that the run did not report are derived from its URL. */
export function toProducedPullRequest({
  codeHostKind,
  repository,
  ...reported
}: ReportedPullRequest): ProducedPullRequest {
  const [, path = "", kind = "", number = "0"] = PULL_REQUEST_URL.exec(reported.url) ?? [];
  return {
    ...reported,
    urlKey: urlKey(reported.url),
    provider: PROVIDERS[codeHostKind] ?? (kind.toLowerCase() === "merge_requests" ? "GITLAB" : "GITHUB"),
    repoFullName: repository === "" ? path : repository,
    number: reported.number === 0 ? Number(number) : reported.number,
  };
}
