import { DomainError, invalidArgument, notFound } from "@millwright/errors";
import { refusalIn } from "@millwright/outbound";

const TIMEOUT_MS = 15_000;
const PAGE = 100;
/** Rejections that callers interpret. */
const RETURNED_STATUS: readonly number[] = [404, 409, 422];

/**
 * Sends a request to a forge's REST API. Returns 404, 409, 422 and the forge's other rejections for the caller to
 * interpret.
 */
export type ForgeApi = (
  method: "GET" | "POST",
  path: string,
  body?: object,
) => Promise<{ readonly status: number; readonly body: unknown }>;

type ForgeOptions = {
  readonly baseUrl: string;
  readonly token: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: typeof fetch;
};

/**
 * Returns a client of a forge's REST API that translates its rejections into our errors.
 *
 * Errors: code_host_unauthorized, code_host_forbidden, code_host_rate_limited, code_host_unavailable,
 * internal_address_refused.
 */
export const forgeApi =
  (options: ForgeOptions & { readonly returnedStatus?: readonly number[] }): ForgeApi =>
  async (method, path, body) => {
    const response = await sendToForge(options, method, path, {}, body);
    if (response.ok || [...RETURNED_STATUS, ...(options.returnedStatus ?? [])].includes(response.status))
      return { status: response.status, body: await parsed(response) };
    await response.body?.cancel();
    throw refusal(response);
  };

/**
 * Sends a request to a forge and returns its response with any status. Errors: code_host_unavailable,
 * internal_address_refused.
 */
export const sendToForge = (
  options: ForgeOptions,
  method: "GET" | "POST",
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: object,
): Promise<Response> =>
  options
    .fetch(`${options.baseUrl}${path}`, {
      method,
      headers: {
        ...options.headers,
        ...headers,
        "user-agent": "millwright",
        ...(options.token === "" ? {} : { authorization: `Bearer ${options.token}` }),
        ...(body ? { "content-type": "application/json" } : {}),
      },
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    .catch((cause: unknown) => {
      const internal = refusalIn(cause);
      throw internal ? notReached(internal) : unavailable(cause);
    });

/** Returns the JSON of a response. Errors: code_host_unavailable. */
export async function parsed(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch (cause) {
    throw unavailable(cause);
  }
}

/** Returns whether the forge rejected a request because its rate limit is exhausted. */
export const isRateLimited = ({ status, headers }: Response): boolean =>
  status === 429 || (status === 403 && (headers.has("retry-after") || headers.get("x-ratelimit-remaining") === "0"));

/** Returns our error for a forge's rejection. */
export function refusal(response: Response): DomainError {
  const { status, headers } = response;
  if (isRateLimited(response)) {
    const seconds = Number(headers.get("retry-after")) || 60;
    return new DomainError({
      kind: "rate_limited",
      reason: "code_host_rate_limited",
      message: `The rate limit of the code host is reached. Retry after ${seconds} seconds.`,
      retryAfterSeconds: seconds,
    });
  }
  if (status === 401) {
    const message = "The code host does not accept the connection's credential.";
    return new DomainError({
      kind: "unauthenticated",
      code: "external_authentication_required",
      reason: "code_host_unauthorized",
      message,
    });
  }
  if (status === 403) {
    return new DomainError({
      kind: "permission_denied",
      reason: "code_host_forbidden",
      message: "The code host refused this (403). Check the permissions of the connection's credential.",
    });
  }
  return unavailable(new Error(`the code host responded with status ${status}`));
}

const unavailable = (cause: unknown): DomainError =>
  new DomainError({
    kind: "unavailable",
    reason: "code_host_unavailable",
    message: "The code host is not reachable or returned an unexpected response. Retry in a few seconds.",
    cause,
  });

const notReached = ({ message }: Error): DomainError =>
  invalidArgument("internal_address_refused", `The code host was not called: ${message}`);

/** The error for a 404 of a repository: absent, or not visible to the credential. */
export const repositoryNotFound = (): DomainError => notFound("repository");

/** Returns the elements of a list that the forge serves in pages of 100, up to a maximum. */
export async function allPages(api: ForgeApi, path: string, most: number): Promise<unknown[]> {
  const found: unknown[] = [];
  for (let page = 1; found.length < most; page++) {
    const { status, body } = await api("GET", `${path}${path.includes("?") ? "&" : "?"}per_page=${PAGE}&page=${page}`);
    if (status !== 200 || !Array.isArray(body)) break;
    found.push(...(body as unknown[]));
    if (body.length < PAGE) break;
  }
  return found.slice(0, most);
}

/**
 * Returns one file of a unified diff from the forge's list; only its header without hunks (a binary or large file).
 */
export function fileDiff({
  path,
  oldPath,
  isNew,
  isRemoved,
  hunks,
}: {
  readonly path: string;
  readonly oldPath: unknown;
  readonly isNew: boolean;
  readonly isRemoved: boolean;
  readonly hunks: unknown;
}): string {
  const before = typeof oldPath === "string" && oldPath !== "" ? oldPath : path;
  const header = `diff --git a/${before} b/${path}\n--- ${isNew ? "/dev/null" : `a/${before}`}\n+++ ${isRemoved ? "/dev/null" : `b/${path}`}\n`;
  return typeof hunks === "string" && hunks !== "" ? `${header}${hunks}${hunks.endsWith("\n") ? "" : "\n"}` : header;
}

/** Returns a member of a response body; undefined if it is absent. */
export const member = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;

/** Returns the texts among the values, without duplicates. */
export const textsAmong = (values: readonly unknown[]): string[] => [
  ...new Set(values.filter((value) => typeof value === "string")),
];

/** Returns a text that every valid response has. Errors: code_host_unavailable. */
export function text(value: unknown, name: string): string {
  const found = member(value, name);
  if (typeof found === "string") return found;
  throw new DomainError({
    kind: "unavailable",
    reason: "code_host_unavailable",
    message: "The code host is not reachable or returned an unexpected response. Retry in a few seconds.",
    metadata: { missing: name },
  });
}

export const headMoved = (sha: string): DomainError =>
  new DomainError({
    kind: "conflict",
    reason: "head_moved",
    message: `The branch is no longer at the given commit; it is at ${sha}. Fetch it and retry.`,
    metadata: { headSha: sha },
  });

/** `reason`: the code host's own short reason, meant to be shown. */
export const pullRequestRefused = (reason: unknown): DomainError =>
  new DomainError({
    kind: "unsupported",
    reason: "pull_request_refused",
    message: `The code host refused the pull request: ${typeof reason === "string" ? reason.slice(0, 300) : "no reason given"}`,
  });
