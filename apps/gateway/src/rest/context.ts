import type { IncomingMessage, ServerResponse } from "node:http";
import type Koa from "koa";
import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";
import type { Logger, Metrics, Tracer } from "@millwright/telemetry";
import type { IdempotencyKey, Route } from "./route.ts";

/** Turns a bearer credential into a caller. Errors: unauthenticated. */
export type Authenticate = (credential: {
  readonly bearer: string;
  /** What the active-team header says, whatever it is. */
  readonly teamUid: string | undefined;
  readonly requestId: string;
}) => Promise<Caller>;

/** Answers as the first time, for 24 hours; the first time, by what is done. Errors: idempotency_mismatch (conflict) and those of `act`, which are not kept. */
export type AnswerOnce = <T>(caller: Caller, idempotency: IdempotencyKey, act: () => Promise<T>) => Promise<T>;

/** Raw HTTP doors beside the REST routes (worker RPC, signed blobs); they answer for themselves. `isRecorded`: and record what they do. */
export type Mount = {
  readonly prefix: `/${string}/`;
  readonly listener: RequestListener;
  readonly isRecorded?: boolean;
};
export type RequestListener = (req: IncomingMessage, res: ServerResponse) => void;

export type RestOptions = {
  readonly publicUrl: string;
  readonly routes: readonly Route[];
  readonly authenticate: Authenticate;
  /** For routes that keep their answers. */
  readonly answerOnce: AnswerOnce;
  /** Names under which the active team may be sent, most preferred first. */
  readonly teamHeaders: readonly string[];
  readonly mounts?: readonly Mount[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Records a span per request; absent: none. */
  readonly tracer?: Tracer | undefined;
};

/** What the middlewares tell each other about one request. */
export type RequestState = { requestId: string; traceId: string; route?: Route; caller?: Caller };
export type RestContext = Koa.ParameterizedContext<RequestState>;

/** The bearer credential of a request; undefined: none. */
export const bearerOf = (ctx: RestContext): string | undefined =>
  /^Bearer +([\x21-\x7e]+) *$/i.exec(ctx.get("authorization"))?.[1];

/** The caller of a request that must have one. Errors: credential_missing and those of `authenticate` (unauthenticated). */
export async function authenticated(options: RestOptions, ctx: RestContext): Promise<Caller> {
  const bearer = bearerOf(ctx);
  if (!bearer)
    throw new DomainError({
      kind: "unauthenticated",
      reason: "credential_missing",
      message: "Send an API key as a bearer token.",
    });
  const teamUid = options.teamHeaders.map((name) => ctx.get(name)).find((text) => text !== "");
  return options.authenticate({ bearer, teamUid, requestId: ctx.state.requestId });
}
