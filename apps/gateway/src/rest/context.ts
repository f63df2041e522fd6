import type { IncomingMessage, ServerResponse } from "node:http";
import type Koa from "koa";
import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";
import type { Logger, Metrics, Tracer } from "@millwright/telemetry";
import type { IdempotencyKey, Route } from "./route.ts";

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

export type RestOptions = {
  readonly publicUrl: string;
  readonly routes: readonly Route[];
  readonly authenticate: Authenticate;
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
export const bearerOf = (ctx: RestContext): string | undefined =>
  /^Bearer +([\x21-\x7e]+) *$/i.exec(ctx.get("authorization"))?.[1];

/**
 * Returns the caller of a request that requires one. Errors: credential_missing · those of `authenticate`
 * (unauthenticated).
 */
export async function authenticated(options: RestOptions, ctx: RestContext): Promise<Caller> {
  const bearer = bearerOf(ctx);
  if (!bearer)
    throw new DomainError({
      kind: "unauthenticated",
      reason: "credential_missing",
      message: "The request has no API key. Send it as `Authorization: Bearer <key>`.",
    });
  const teamUid = options.teamHeaders.map((name) => ctx.get(name)).find((text) => text !== "");
  return options.authenticate({ bearer, teamUid, requestId: ctx.state.requestId });
}
