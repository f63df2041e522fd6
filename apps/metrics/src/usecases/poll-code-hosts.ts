import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import { isDomainError } from "@millwright/errors";
import type { Logger } from "@millwright/telemetry";
import { githubListFacts } from "../domain/github-history.ts";
import { gitlabListFacts } from "../domain/gitlab-history.ts";
import { nextPullRequestPoll, nextRepositoryPoll, nextTry } from "../domain/poll-plan.ts";
import type { PullRequestFacts } from "../domain/pull-request-fact.ts";
import { urlKey } from "../domain/url-key.ts";
import {
  claimPullRequests,
  claimRepositories,
  finishPullRequest,
  finishRepository,
  pauseCodeHost,
  pausedUntil,
  planChanged,
  retryPullRequest,
  retryRepository,
  saveRepositoryProgress,
  type PullRequestClaim,
  type RepositoryClaim,
} from "../store/poll-store.ts";
import type { PullRequestFactStore } from "../store/pull-request-fact-store.ts";
import {
  CodeHostLimited,
  NotAtCodeHost,
  readHistory,
  type CodeHostResponse,
  type CodeHostRead,
} from "./read-history.ts";

export type PollCodeHostsDeps = {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly codeHosts: {
    read(read: CodeHostRead): Promise<CodeHostResponse>;
    botLogin(teamUid: string, codeHostUid: string): Promise<string>;
  };
  readonly pullRequests: PullRequestFactStore;
  readonly countRead: (provider: string, outcome: string) => void;
  /** Divides every wait. */
  readonly timeScale: number;
};

/** Reads that a replica claims in one batch and executes sequentially. */
const BATCH = 10;
/**
 * How long a claim lasts if its process dies. Reads of a batch that takes longer may be repeated by another replica,
 * which changes nothing.
 */
const LEASE_MS = 300_000;
/** Pages of a list of changes after which other repositories are read first. */
const LIST_PAGES_MAX = 10;
/**
 * A code host may publish a change after one with a later time, so a list is read again from this long before its
 * newest change.
 */
const OVERLAP_MS = 10_000;
/** Share of the connection's rate limit that is reserved for runs and automations. */
const RESERVE = 0.1;

/**
 * Executes due reads of code hosts: lists of changed pull requests of repositories, and pull requests that runs
 * produced. Any number of replicas may do so. The claims of a process that dies end with their lease. The facts of a
 * pull request and the end of its claim are stored in one transaction. Returns how many reads were due.
 */
export async function pollCodeHosts(deps: PollCodeHostsDeps): Promise<number> {
  const { database, clock } = deps;
  const repositories = await claimRepositories(database.sql, clock.now(), BATCH, LEASE_MS);
  for (const claim of repositories) await pollRepository(deps, claim);
  const pullRequests = await claimPullRequests(database.sql, clock.now(), BATCH, LEASE_MS);
  for (const claim of pullRequests) await pollPullRequest(deps, claim);
  return repositories.length + pullRequests.length;
}

/** Reads one page, counts the read, and pauses the connection if its rate limit is used up except for the reserve. */
async function readPage(deps: PollCodeHostsDeps, read: CodeHostRead): Promise<CodeHostResponse> {
  const { kind } = read;
  const response = await deps.codeHosts.read(read).catch((error: unknown) => {
    deps.countRead(kind, "error");
    throw error;
  });
  const { codeHostUid, outcome, rateLimit, retryAfterSeconds } = response;
  deps.countRead(kind, outcome);
  const pause = async (seconds: number): Promise<Date> => {
    const until = new Date(deps.clock.now().getTime() + 1000 * seconds);
    await pauseCodeHost(deps.database.sql, codeHostUid, until);
    return until;
  };
  if (outcome === "rate_limited") throw new CodeHostLimited(await pause(retryAfterSeconds));
  if (rateLimit && rateLimit.remaining < RESERVE * rateLimit.limit) await pause(rateLimit.resetsInSeconds);
  return response;
}

/**
 * Throws `CodeHostLimited` if an earlier read of the batch, or another replica, has paused the connection since the
 * claim.
 */
async function checkPause(
  { database, clock }: PollCodeHostsDeps,
  { codeHostUid }: RepositoryClaim | PullRequestClaim,
): Promise<void> {
  const until = codeHostUid && (await pausedUntil(database.sql, codeHostUid, clock.now()));
  if (until) throw new CodeHostLimited(until);
}

async function pollRepository(deps: PollCodeHostsDeps, claim: RepositoryClaim): Promise<void> {
  const { sql } = deps.database;
  try {
    await checkPause(deps, claim);
    const { codeHostUid, readTo, isComplete } = await readChanges(deps, claim);
    const now = deps.clock.now();
    const pollAt = isComplete ? nextRepositoryPoll(readTo, now, deps.timeScale) : now;
    await finishRepository(sql, claim, { codeHostUid, pollAt, now });
  } catch (error) {
    const isConnected = !isNotConnected(error);
    if (isConnected) warn(deps, error, `${claim.provider} ${claim.repoFullName}`);
    await retryRepository(sql, claim, retryTime(deps, error, claim.failures), isConnected);
  }
}

/** Stores the changed pull requests of a repository, by any author, oldest change first. */
async function readChanges(
  deps: PollCodeHostsDeps,
  claim: RepositoryClaim,
): Promise<{ readonly codeHostUid: string; readonly readTo: Date; readonly isComplete: boolean }> {
  const { teamUid, provider, repoFullName } = claim;
  let { readTo, etag } = claim;
  let [page, codeHostUid] = ["", ""];
  // Not left between pages of one time: the next claim begins at `readTo` again and would read the same pages.
  for (let pages = 0; pages < LIST_PAGES_MAX || page !== ""; pages += 1) {
    const response = await readPage(deps, {
      teamUid,
      kind: provider.toLowerCase(),
      repository: repoFullName,
      resource: "pull_requests",
      changedSince: new Date(readTo.getTime() - OVERLAP_MS),
      page,
      etag: page === "" ? etag : "",
    });
    ({ codeHostUid } = response);
    if (response.outcome === "not_modified") return { codeHostUid, readTo, isComplete: true };
    if (response.outcome === "not_found") throw new NotAtCodeHost(repoFullName);
    const items = Array.isArray(response.body) ? (response.body as unknown[]) : [];
    const facts = items.flatMap((item) => listFacts(provider, item, repoFullName) ?? []);
    await storeChanges(deps, teamUid, facts);
    const newest = new Date(Math.max(readTo.getTime(), ...items.map((item) => changeTime(item))));
    const isNewer = newest > readTo;
    // A list that begins at another time has another ETag.
    etag = !isNewer && page === "" && response.nextPage === "" ? response.etag : "";
    // Items move to the end of the list when they change: the next page begins at the newest change instead of at a number of items.
    page = isNewer ? "" : response.nextPage;
    readTo = newest;
    await saveRepositoryProgress(deps.database.sql, claim, { readTo, etag });
    if (response.nextPage === "") return { codeHostUid, readTo, isComplete: true };
  }
  return { codeHostUid, readTo, isComplete: false };
}

const listFacts = (provider: string, item: unknown, repoFullName: string): PullRequestFacts | undefined =>
  provider === "GITHUB" ? githubListFacts(item, repoFullName) : gitlabListFacts(item, repoFullName);

async function storeChanges(
  deps: PollCodeHostsDeps,
  teamUid: string,
  facts: readonly PullRequestFacts[],
): Promise<void> {
  if (facts.length === 0) return;
  await deps.pullRequests.record(
    facts.map((each) => ({ teamUid, facts: each })),
    async () => {},
  );
  const changes = facts.map(({ pullRequest }) => ({
    urlKey: urlKey(pullRequest.url),
    changedAt: pullRequest.updatedAt,
  }));
  await planChanged(deps.database.sql, teamUid, changes, deps.clock.now());
}

async function pollPullRequest(deps: PollCodeHostsDeps, claim: PullRequestClaim): Promise<void> {
  const { sql } = deps.database;
  const { teamUid, provider } = claim;
  try {
    await checkPause(deps, claim);
    const known = await deps.pullRequests.known(teamUid, claim.urlKey);
    // Approximate activities are replaced only by a complete read, so the ETags are not sent.
    const etags = known.hasApproximateActivities ? {} : claim.etags;
    const read = await readHistory(
      (page) => readPage(deps, page),
      (codeHostUid) => deps.codeHosts.botLogin(teamUid, codeHostUid),
      { ...claim, etags },
    );
    const now = deps.clock.now();
    const { state, changedAt } = read ?? { state: known.state, changedAt: claim.changedAt ?? now };
    const pollAt = nextPullRequestPoll({ provider, state, changedAt }, now, deps.timeScale);
    const plan = { etags: read?.etags ?? claim.etags, changedAt, pollAt };
    if (read?.facts)
      await deps.pullRequests.record([{ teamUid, facts: read.facts }], (tx) => finishPullRequest(tx, claim, plan));
    else await finishPullRequest(sql, claim, plan);
  } catch (error) {
    const isWaiting = isNotConnected(error) && provider !== "LOCAL";
    if (!isWaiting) warn(deps, error, claim.url);
    await retryPullRequest(sql, claim, isWaiting ? undefined : retryTime(deps, error, claim.failures));
  }
}

const retryTime = ({ clock, timeScale }: PollCodeHostsDeps, error: unknown, failures: number): Date =>
  error instanceof CodeHostLimited ? error.until : nextTry(failures, clock.now(), timeScale);

const isNotConnected = (error: unknown): boolean => isDomainError(error) && error.reason === "code_host_not_connected";

function warn({ log }: PollCodeHostsDeps, error: unknown, subject: string): void {
  log.warn({ error, operation: `read ${subject}` }, "a read of a code host failed; it will be retried");
}

/** `updated_at`; 0 if there is none. */
function changeTime(item: unknown): number {
  const text = typeof item === "object" && item !== null ? (item as Record<string, unknown>)["updated_at"] : undefined;
  const ms = typeof text === "string" ? Date.parse(text) : NaN;
  return Number.isNaN(ms) ? 0 : ms;
}
