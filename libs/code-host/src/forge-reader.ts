import { invalidArgument, type DomainError } from "@millwright/errors";
import type { Repository } from "./code-host.ts";
import { isRateLimited, parsed, refusal, sendToForge } from "./forge-api.ts";
import { GITHUB_HEADERS } from "./github-host.ts";
import { checkBranch, checkProject, checkRepository } from "./names.ts";

/** What can be read of a pull request, and the list of those that have changed. */
export const FORGE_RESOURCES = [
  "pull_requests",
  "pull_request",
  "reviews",
  "comments",
  "review_comments",
  "events",
  "pushes",
] as const;
export type ForgeResource = (typeof FORGE_RESOURCES)[number];

export type ForgeRead = {
  readonly repository: Repository;
  readonly resource: ForgeResource;
  /** Of the pull request; `pull_requests` has none. */
  readonly number: number;
  /** `pull_requests`: those changed at or after this time, oldest change first. */
  readonly changedSince?: Date | undefined;
  /** `pushes` of GitHub: the branch, in `repository`. */
  readonly branch?: string | undefined;
  /** `nextPage` of the page before; "" = the first. */
  readonly page: string;
  /** Of an earlier read of the same page; "" = none. */
  readonly etag: string;
};

/** How much of the token's allowance is left. */
export type RateLimit = { readonly limit: number; readonly remaining: number; readonly resetsInSeconds: number };

export type ForgeResponse = {
  /** The JSON in the forge's own shape, with long texts cut; undefined unless `found`. */
  readonly body: unknown;
  readonly outcome: "found" | "not_modified" | "not_found" | "rate_limited";
  readonly etag: string;
  /** "" = the last page. */
  readonly nextPage: string;
  /** By the clock of the forge. */
  readonly answeredAt: Date;
  /** Undefined: not reported. */
  readonly rateLimit: RateLimit | undefined;
  /** How long the forge asks to wait; 0 = not. */
  readonly retryAfterSeconds: number;
};

export type ForgeReader = (read: ForgeRead) => Promise<ForgeResponse>;

export type ForgeReaderOptions = {
  readonly kind: "github" | "gitlab";
  /** API base, such as "https://api.github.com" or "https://gitlab.com/api/v4". */
  readonly baseUrl: string;
  readonly token: string;
  readonly fetch: typeof fetch;
};

/**
 * Returns a function that reads a page of a forge's REST API if it has changed. A rejection because of rate limits is a
 * result, not an error.
 *
 * Errors of reads: repository_invalid, branch_invalid, resource_invalid; code_host_unauthorized, code_host_forbidden,
 * code_host_unavailable, internal_address_refused.
 */
export const forgeReader = ({ kind, baseUrl, token, fetch }: ForgeReaderOptions): ForgeReader => {
  const headers = kind === "github" ? GITHUB_HEADERS : { accept: "application/json" };
  const options = { baseUrl: baseUrl.replace(/\/+$/, ""), token, headers, fetch };
  return async (read) => {
    const path = pathOf(kind, read);
    const conditional: Record<string, string> = read.etag === "" ? {} : { "if-none-match": read.etag };
    return toForgeResponse(await sendToForge(options, "GET", path, conditional), read.etag);
  };
};

async function toForgeResponse(response: Response, etag: string): Promise<ForgeResponse> {
  const { status, headers } = response;
  const answeredAt = dateOf(headers.get("date"));
  const rateLimit = rateLimitOf(headers, answeredAt);
  const common = { body: undefined, etag, nextPage: "", answeredAt, rateLimit, retryAfterSeconds: 0 };
  if (status === 200) {
    const body = withoutLongTexts(await parsed(response));
    return { ...common, outcome: "found", body, etag: headers.get("etag") ?? "", nextPage: nextPageOf(headers) };
  }
  await response.body?.cancel();
  if (status === 304) return { ...common, outcome: "not_modified" };
  if (isRateLimited(response))
    return { ...common, outcome: "rate_limited", retryAfterSeconds: retrySeconds(headers, answeredAt, rateLimit) };
  if (status === 404 || status === 410 || status === 422) return { ...common, outcome: "not_found" };
  throw refusal(response);
}

const PER_PAGE = "per_page=100";

function pathOf(kind: "github" | "gitlab", read: ForgeRead): string {
  const path = kind === "github" ? githubPath(read) : gitlabPath(read);
  if (read.page === "") return path;
  if (!/^(?:page|after)=[\w%=+.~-]{1,500}$/.test(read.page)) throw invalid(`page is unknown (got "${read.page}").`);
  return `${path}&${read.page}`;
}

function githubPath({ repository, resource, number, changedSince, branch }: ForgeRead): string {
  const { owner, repo } = checkRepository(repository);
  const base = `/repos/${owner}/${repo}`;
  switch (resource) {
    case "pull_requests":
      return `${base}/issues?state=all&sort=updated&direction=asc&since=${sinceOf(changedSince)}&${PER_PAGE}`;
    case "pull_request":
      return `${base}/pulls/${numberOf(number)}`;
    case "reviews":
      return `${base}/pulls/${numberOf(number)}/reviews?${PER_PAGE}`;
    case "review_comments":
      return `${base}/pulls/${numberOf(number)}/comments?${PER_PAGE}`;
    case "comments":
      return `${base}/issues/${numberOf(number)}/comments?${PER_PAGE}`;
    case "events":
      return `${base}/issues/${numberOf(number)}/events?${PER_PAGE}`;
    case "pushes":
      break;
  }
  return `${base}/activity?ref=${encodeURIComponent(`refs/heads/${checkBranch(branch ?? "")}`)}&${PER_PAGE}`;
}

/** GitLab's review comments are among its comments, and its approvals among the system's. */
function gitlabPath({ repository, resource, number, changedSince }: ForgeRead): string {
  const base = `/projects/${encodeURIComponent(checkProject(repository))}/merge_requests`;
  switch (resource) {
    case "pull_requests":
      return `${base}?state=all&scope=all&order_by=updated_at&sort=asc&updated_after=${sinceOf(changedSince)}&${PER_PAGE}`;
    case "pull_request":
      return `${base}/${numberOf(number)}`;
    case "comments":
      return `${base}/${numberOf(number)}/notes?order_by=created_at&sort=desc&${PER_PAGE}`;
    case "events":
      return `${base}/${numberOf(number)}/resource_state_events?${PER_PAGE}`;
    case "pushes":
      return `${base}/${numberOf(number)}/versions?${PER_PAGE}`;
    case "reviews":
    case "review_comments":
      break;
  }
  throw invalid(`GitLab has no resource "${resource}".`);
}

function sinceOf(changedSince: Date | undefined): string {
  if (!changedSince) throw invalid("changed_since is required for the list of pull requests.");
  return encodeURIComponent(changedSince.toISOString());
}

function numberOf(number: number): number {
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw invalid(`number must be at least 1 (got ${number}).`);
}

const invalid = (message: string): DomainError => invalidArgument("resource_invalid", message);

/** Facts are in short members; descriptions and comments may be megabytes. */
const TEXT_LENGTH_MAX = 1_000;
const withoutLongTexts = (body: unknown): unknown =>
  JSON.parse(JSON.stringify(body), (_, value: unknown) =>
    typeof value === "string" && value.length > TEXT_LENGTH_MAX ? value.slice(0, TEXT_LENGTH_MAX) : value,
  );

/** Returns the query parameter that turns the address of this page into that of the next one; "" = last page. */
function nextPageOf(headers: Headers): string {
  const [, next = ""] = /<([^>]+)>;\s*rel="next"/.exec(headers.get("link") ?? "") ?? [];
  if (!URL.canParse(next)) return "";
  const query = new URL(next).searchParams;
  for (const name of ["after", "page"]) {
    const value = query.get(name);
    if (value) return `${name}=${encodeURIComponent(value)}`;
  }
  return "";
}

/** GitHub names its headers x-ratelimit-…, GitLab ratelimit-…; the reset is in seconds since 1970. */
function rateLimitOf(headers: Headers, answeredAt: Date): RateLimit | undefined {
  const numberAt = (name: string): number | undefined => {
    const value = headers.get(`x-ratelimit-${name}`) ?? headers.get(`ratelimit-${name}`);
    return value !== null && /^\d{1,12}$/.test(value) ? Number(value) : undefined;
  };
  const [limit, remaining, reset] = [numberAt("limit"), numberAt("remaining"), numberAt("reset")];
  if (limit === undefined || remaining === undefined || reset === undefined) return undefined;
  return { limit, remaining, resetsInSeconds: Math.max(0, reset - Math.floor(answeredAt.getTime() / 1000)) };
}

const RETRY_SECONDS = 60;

/** `Retry-After` is in seconds or a date; without it, the reset time of the rate limit applies. At least one second. */
function retrySeconds(headers: Headers, answeredAt: Date, rateLimit: RateLimit | undefined): number {
  const retryAfter = headers.get("retry-after") ?? "";
  const seconds = /^\d{1,9}$/.test(retryAfter)
    ? Number(retryAfter)
    : Math.ceil((Date.parse(retryAfter) - answeredAt.getTime()) / 1000);
  return Math.max(1, Number.isNaN(seconds) ? (rateLimit?.resetsInSeconds ?? RETRY_SECONDS) : seconds);
}

function dateOf(text: string | null): Date {
  const ms = Date.parse(text ?? "");
  return Number.isNaN(ms) ? new Date() : new Date(ms);
}
