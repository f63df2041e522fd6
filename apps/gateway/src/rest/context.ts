import type { IncomingMessage, ServerResponse } from "node:http";
import type Koa from "koa";
import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";
import type { Logger, Metrics, Tracer } from "@millwright/telemetry";
import type { Reply } from "./reply.ts";
import type { IdempotencyKey, Route } from "./route.ts";
import { assertSameOrigin } from "./same-origin.ts";

/** Returns the caller that a bearer credential belongs to. Errors: unauthenticated. */
export type Authenticate = (credential: {
  readonly bearer: string;
  /** Value of the active-team header, not validated. */
  readonly teamUid: string | undefined;
  readonly requestId: string;
}) => Promise<Caller>;

/**
 * Runs `act` and stores its result for 24 hours. Returns the stored result to a repeat with the same idempotency key.
 * Errors: idempotency_mismatch (conflict) · those of `act`, which are not stored.
 */
export type RespondOnce = <T>(caller: Caller, idempotency: IdempotencyKey, act: () => Promise<T>) => Promise<T>;

/** A raw HTTP listener beside the REST routes (worker RPC, signed blobs), which writes its own responses. */
export type Mount = {
  readonly prefix: `/${string}/`;
  readonly listener: RequestListener;
  /** The listener writes its own logs, metrics and spans. */
  readonly isRecorded?: boolean;
};
export type RequestListener = (req: IncomingMessage, res: ServerResponse) => void;

/** What the REST layer does with sessions of browsers. */
export type RequestSessions = {
  /** Returns the credential of the session in a Cookie header, or undefined if there is none. */
  credential(cookies: string | undefined): string | undefined;
  /** Returns a `Set-Cookie` value if the session of an authenticated caller is due for a new token. */
  renewedCookie(caller: Caller): Promise<string | undefined>;
};

export type RestOptions = {
  readonly publicUrl: string;
  readonly routes: readonly Route[];
  readonly authenticate: Authenticate;
  /** Sessions of browsers. */
  readonly sessions?: RequestSessions;
  /** Returns the caller of a session link's token for a run, or undefined if it is not valid for that run. */
  readonly linkCaller?: (token: string, runUid: string, requestId: string) => Caller | undefined;
  /** Responds to browser navigations to paths that no route has. */
  readonly navigationPage?: () => Promise<Reply>;
  /** Used by routes with `storesResponse`. */
  readonly respondOnce: RespondOnce;
  /** Names of the header with the active team, most preferred first. */
  readonly teamHeaders: readonly string[];
  readonly mounts?: readonly Mount[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Records a span per request. Absent: no spans. */
  readonly tracer?: Tracer | undefined;
};

/** State of one request, shared by the middlewares. */
export type RequestState = { requestId: string; traceId: string; route?: Route; caller?: Caller };
export type RestContext = Koa.ParameterizedContext<RequestState>;

/** Returns the bearer credential of a request, or undefined if there is none. */
const bearerOf = (ctx: RestContext): string | undefined =>
  /^Bearer +([\x21-\x7e]+) *$/i.exec(ctx.get("authorization"))?.[1];

const SAFE_METHODS = new Set(["GET", "HEAD"]);

/**
 * Returns the credential of a request: its bearer credential, or else that of its browser session. Errors:
 * cross_site_request for a write with a session that no page of this server sent.
 */
export function credentialOf(options: RestOptions, ctx: RestContext): string | undefined {
  if (ctx.get("authorization") !== "") return bearerOf(ctx);
  const credential = options.sessions?.credential(ctx.req.headers.cookie);
  if (credential !== undefined && !SAFE_METHODS.has(ctx.method)) assertSameOrigin(ctx.req.headers, options.publicUrl);
  return credential;
}

/**
 * Returns the caller of a request that requires one. Errors: credential_missing · those of `credentialOf` and
 * `authenticate`.
 */
export async function authenticated(options: RestOptions, ctx: RestContext): Promise<Caller> {
  const bearer = credentialOf(options, ctx);
  const viewer = bearer === undefined ? linkCallerOf(options, ctx) : undefined;
  if (viewer) return viewer;
  if (!bearer)
    throw new DomainError({
      kind: "unauthenticated",
      reason: "credential_missing",
      message: "The request has no API key. Send it as `Authorization: Bearer <key>`.",
    });
  const teamUid = options.teamHeaders.map((name) => ctx.get(name)).find((text) => text !== "");
  return options.authenticate({ bearer, teamUid, requestId: ctx.state.requestId });
}

/** Header with the token of a session link. It is accepted for reading the run of the link. */
const LINK_HEADER = "x-millwright-view";

function linkCallerOf({ linkCaller }: RestOptions, ctx: RestContext): Caller | undefined {
  const token = ctx.get(LINK_HEADER);
  const runUid = (ctx["params"] as Readonly<Record<string, string>> | undefined)?.["runId"];
  if (token === "" || runUid === undefined || ctx.method !== "GET") return undefined;
  return linkCaller?.(token, runUid, ctx.state.requestId);
}
