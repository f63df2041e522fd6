import { textAt } from "@millwright/code-host-events";
import { isDomainError } from "@millwright/errors";
import { githubHistoryFacts } from "../domain/github-history.ts";
import { gitlabHistoryFacts } from "../domain/gitlab-history.ts";
import { localFacts } from "../domain/local-facts.ts";
import { timeAt } from "../domain/payload-values.ts";
import type { PullRequestFacts, PullRequestState } from "../domain/pull-request-fact.ts";

export type CodeHostRead = {
  readonly teamUid: string;
  readonly kind: string;
  readonly repository: string;
  readonly resource:
    | "pull_requests"
    | "pull_request"
    | "reviews"
    | "comments"
    | "review_comments"
    | "events"
    | "pushes";
  readonly number?: number;
  readonly changedSince?: Date;
  readonly branch?: string;
  readonly headRepository?: string;
  readonly url?: string;
  readonly page?: string;
  readonly etag?: string;
};

export type CodeHostResponse = {
  readonly codeHostUid: string;
  readonly outcome: "found" | "not_modified" | "not_found" | "rate_limited";
  readonly body: unknown;
  readonly etag: string;
  readonly nextPage: string;
  /** By the clock of the code host. */
  readonly answeredAt: Date;
  readonly rateLimit?:
    | { readonly limit: number; readonly remaining: number; readonly resetsInSeconds: number }
    | undefined;
  readonly retryAfterSeconds: number;
};

/** Reads one page. Errors: CodeHostLimited. */
export type ReadPage = (read: CodeHostRead) => Promise<CodeHostResponse>;

/** Thrown if the code host's rate limit is used up. */
export class CodeHostLimited extends Error {
  readonly until: Date;

  constructor(until: Date) {
    super(`The code host's rate limit is used up until ${until.toISOString()}.`);
    this.until = until;
    this.name = "CodeHostLimited";
  }
}

/** Thrown if the code host has no such pull request, or the connection may not read it. */
export class NotAtCodeHost extends Error {
  constructor(url: string) {
    super(`The code host has no pull request ${url}, or the connection may not read it.`);
    this.name = "NotAtCodeHost";
  }
}

/** A pull request to read. */
export type PullRequestToRead = {
  readonly teamUid: string;
  readonly provider: "GITHUB" | "GITLAB" | "LOCAL";
  readonly url: string;
  readonly repoFullName: string;
  readonly prNumber: number;
  /** Of earlier reads, by resource; empty: read it even if it has not changed. */
  readonly etags: Readonly<Record<string, string>>;
};

export type ReadHistory = {
  readonly etags: Readonly<Record<string, string>>;
  readonly state: PullRequestState;
  readonly changedAt: Date;
  /** Undefined: the code host reports nothing beyond what runs have reported. */
  readonly facts: PullRequestFacts | undefined;
};

/** Returns the account under which the platform acts at a code host; "" = not known. */
export type BotLogin = (codeHostUid: string) => Promise<string>;

const PAGES_MAX = 30;

/**
 * Reads the whole history of a pull request. Returns undefined if it has not changed since its ETags.
 *
 * Errors: CodeHostLimited · NotAtCodeHost · those of the code host.
 */
export async function readHistory(
  read: ReadPage,
  botLogin: BotLogin,
  pull: PullRequestToRead,
): Promise<ReadHistory | undefined> {
  const { teamUid, provider, url, repoFullName: repository, prNumber: number } = pull;
  const request = { teamUid, kind: provider.toLowerCase(), repository, number, url };
  const item = await read({ ...request, resource: "pull_request", etag: pull.etags["pull_request"] ?? "" });
  if (item.outcome === "not_found") throw new NotAtCodeHost(url);
  if (provider === "GITLAB") return readGitlab(read, botLogin, pull, item);
  if (item.outcome === "not_modified") return undefined;
  return provider === "LOCAL" ? localHistory(item) : readGithub(read, botLogin, pull, item);
}

function localHistory({ body, etag }: CodeHostResponse): ReadHistory {
  const facts = localFacts(body);
  const changedAt = facts?.pullRequest.updatedAt ?? timeAt(body, "created_at") ?? new Date(0);
  return { etags: { pull_request: etag }, state: facts ? "merged" : "open", changedAt, facts };
}

/** Every change of a pull request changes what GitHub returns of it. */
async function readGithub(
  read: ReadPage,
  botLogin: BotLogin,
  { teamUid, url, repoFullName: repository, prNumber: number }: PullRequestToRead,
  item: CodeHostResponse,
): Promise<ReadHistory> {
  const request = { teamUid, kind: "github", repository, number };
  const all = (resource: "reviews" | "comments" | "review_comments" | "events") =>
    readPages(read, { ...request, resource });
  const headRepository = textAt(item.body, "head", "repo", "full_name");
  const branch = textAt(item.body, "head", "ref");
  const history = {
    pullRequest: item.body,
    reviews: await all("reviews"),
    comments: await all("comments"),
    reviewComments: await all("review_comments"),
    events: await all("events"),
    pushes:
      headRepository === ""
        ? undefined
        : await readPages(read, { ...request, resource: "pushes", branch, headRepository }).catch(unlessForbidden),
    readAt: item.answeredAt,
  };
  return toRead(githubHistoryFacts(history, await botLogin(item.codeHostUid)), url, { pull_request: item.etag });
}

/** The token may read pull requests and not the activities of the head repository, which may be a fork. */
function unlessForbidden(error: unknown): undefined {
  if (!isDomainError(error) || error.reason !== "code_host_forbidden") throw error;
}

/** A review need not change what GitLab returns of a merge request, but adds a note. */
async function readGitlab(
  read: ReadPage,
  botLogin: BotLogin,
  { teamUid, url, repoFullName: repository, prNumber: number, etags }: PullRequestToRead,
  item: CodeHostResponse,
): Promise<ReadHistory | undefined> {
  const request = { teamUid, kind: "gitlab", repository, number };
  const notes = await read({ ...request, resource: "comments", etag: etags["comments"] ?? "" });
  if (item.outcome === "not_modified" && notes.outcome === "not_modified") return undefined;
  const whole = item.outcome === "found" ? item : await read({ ...request, resource: "pull_request" });
  const history = {
    mergeRequest: whole.body,
    notes: await readPages(read, { ...request, resource: "comments" }, notes),
    stateEvents: await readPages(read, { ...request, resource: "events" }),
    versions: await readPages(read, { ...request, resource: "pushes" }),
    readAt: item.answeredAt,
  };
  const facts = gitlabHistoryFacts(history, repository, await botLogin(item.codeHostUid));
  return toRead(facts, url, { pull_request: whole.etag, comments: notes.etag });
}

/**
 * A repository that was renamed has another URL: the pull request remains the one that the run reported. A pull request
 * at another host is not that of the run.
 */
function toRead(
  facts: PullRequestFacts | undefined,
  url: string,
  etags: Readonly<Record<string, string>>,
): ReadHistory {
  if (!facts || !isSameHost(facts.pullRequest.url, url)) throw new NotAtCodeHost(url);
  const { status, mergedAt, updatedAt } = facts.pullRequest;
  const state = mergedAt ? "merged" : (status?.state ?? "open");
  return { etags, state, changedAt: updatedAt, facts: { ...facts, pullRequest: { ...facts.pullRequest, url } } };
}

const isSameHost = (a: string, b: string): boolean =>
  URL.canParse(a) && URL.canParse(b) && new URL(a).hostname === new URL(b).hostname;

/**
 * Returns the elements of all pages; undefined: there is no such list, or it is too long to be complete. `first`: the
 * first page, if it has been read; it is read again if it had not changed, because the response has no body then.
 */
async function readPages(
  read: ReadPage,
  request: CodeHostRead,
  first?: CodeHostResponse,
): Promise<unknown[] | undefined> {
  const found: unknown[] = [];
  let page = "";
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const isRead = pages === 0 && first?.outcome === "found";
    const { outcome, body, nextPage } = isRead ? first : await read({ ...request, page });
    if (outcome !== "found" || !Array.isArray(body)) return undefined;
    found.push(...(body as unknown[]));
    if (nextPage === "") return found;
    page = nextPage;
  }
  return undefined;
}
