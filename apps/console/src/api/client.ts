import createClient, { type Middleware } from "openapi-fetch";
import type { paths } from "../gen/api.ts";
import { ApiError, errorOf } from "./problem.ts";
import { activeTeam } from "./active-team.ts";

const TEAM_HEADER = "X-Service-Team-Uid";

const middleware: Middleware = {
  onRequest({ request }) {
    const team = activeTeam.get();
    if (team !== undefined) request.headers.set(TEAM_HEADER, team);
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

/** Returns the headers of requests that the typed client does not send: event streams and downloads. */
export function requestHeaders(): Record<string, string> {
  const team = activeTeam.get();
  return team === undefined ? {} : { [TEAM_HEADER]: team };
}

/** Returns the body of a response. Use with calls of `api`, whose failures throw. */
export async function dataOf<T>(call: Promise<{ data?: T }>): Promise<T> {
  const { data } = await call;
  return data as T;
}

/** Returns a header that makes a create safe to repeat. One value per user action. */
export const idempotencyKey = (): { "Idempotency-Key": string } => ({ "Idempotency-Key": crypto.randomUUID() });

/** Signs in with an API key. The server answers with a session cookie that scripts cannot read. */
export async function signIn(key: string): Promise<void> {
  const response = await fetch("/session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ key }),
  });
  if (!response.ok) throw await errorOf("POST /session", response);
}

/** Ends the session of this browser. */
export async function signOut(): Promise<void> {
  const response = await fetch("/session", { method: "DELETE" });
  if (!response.ok) throw await errorOf("DELETE /session", response);
}
