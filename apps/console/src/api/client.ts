import createClient, { type Middleware } from "openapi-fetch";
import type { paths } from "../gen/api.ts";
import { ApiError, errorOf } from "./problem.ts";
import { activeTeam } from "./active-team.ts";

const TEAM_HEADER = "X-Service-Team-Uid";
/** The gateway accepts the token for reading the run of the link. A session has precedence. */
const VIEW_HEADER = "X-Millwright-View";

/** Returns the token of the session link that the page was opened with. */
export const viewToken = (): string | undefined => new URLSearchParams(location.search).get("view") ?? undefined;

const middleware: Middleware = {
  onRequest({ request }) {
    for (const [name, value] of Object.entries(requestHeaders())) request.headers.set(name, value);
    return request;
  },
  async onResponse({ request, response }) {
    if (response.ok || response.status === 304) return undefined;
    throw await errorOf(`${request.method} ${new URL(request.url).pathname}`, response);
  },
  onError({ request, error }) {
    if (error instanceof ApiError || (error instanceof DOMException && error.name === "AbortError")) return undefined;
    return new ApiError(`${request.method} ${new URL(request.url).pathname}`, 0, {}, undefined);
  },
};

/**
 * The typed client of the REST API. Every failure throws an `ApiError`. The browser sends the session cookie; the
 * active team is sent as a header.
 */
export const api = createClient<paths>({
  baseUrl: location.origin,
  querySerializer: { array: { style: "form", explode: true } },
});
api.use(middleware);

/** Returns the headers of every request: the active team, and the token of a session link. */
export function requestHeaders(): Record<string, string> {
  const [team, view] = [activeTeam.get(), viewToken()];
  return {
    ...(team === undefined ? {} : { [TEAM_HEADER]: team }),
    ...(view === undefined ? {} : { [VIEW_HEADER]: view }),
  };
}

/**
 * Returns the JSON body of a response. Use with calls of `api`, whose failures throw. Operations that also export text
 * return it only if the request asks for it.
 */
export async function dataOf<T>(call: Promise<{ data?: T }>): Promise<Exclude<T, string>> {
  const { data } = await call;
  return data as Exclude<T, string>;
}

/** Returns a header that makes a create safe to repeat. One value per user action. */
export const idempotencyKey = (): { "Idempotency-Key": string } => ({ "Idempotency-Key": crypto.randomUUID() });

/** Signs in with an API key. The server sets a session cookie that scripts cannot read. */
export async function signIn(key: string): Promise<void> {
  const response = await fetch("/session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ key }),
  });
  if (!response.ok) throw await errorOf("POST /session", response);
}

/** Ends the session of this browser, or all sessions of the person. */
export async function signOut({ isEverywhere }: { isEverywhere: boolean }): Promise<void> {
  const response = await fetch(isEverywhere ? "/session?everywhere=true" : "/session", { method: "DELETE" });
  if (!response.ok) throw await errorOf("DELETE /session", response);
}

/** The ways to sign in besides API keys. */
export type SignInOptions = {
  /** An OpenID Connect provider. A navigation to the path signs in with it. */
  readonly provider?: { readonly label: string; readonly path: string };
};

/** Reads the ways to sign in. */
export async function readSignInOptions(signal: AbortSignal): Promise<SignInOptions> {
  const response = await fetch("/session", { signal });
  if (!response.ok) throw await errorOf("GET /session", response);
  return (await response.json()) as SignInOptions;
}
