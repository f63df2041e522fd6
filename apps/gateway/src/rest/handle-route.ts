import { hash } from "node:crypto";
import { DomainError } from "@millwright/errors";
import { BODY_BYTES_MAX, readBody, readIdempotencyKey, readJson, readParams, readQuery } from "./read-request.ts";
import { Reply } from "./reply.ts";
import { authenticated, credentialOf, type RestContext, type RestOptions } from "./context.ts";
import type { Route } from "./route.ts";

const TIMEOUT_MS = 30_000;
/** Created once: `abort()` without a reason creates an error with a stack trace on every call. */
const CLIENT_DISCONNECTED = new Error("The client has disconnected.");

/** Authenticates the caller, validates the input, runs the handler of the route and writes its response. */
export async function handleRoute(options: RestOptions, route: Route, ctx: RestContext): Promise<void> {
  ctx.state.route = route;
  const disconnected = new AbortController();
  ctx.res.once("close", () => ctx.res.writableFinished || disconnected.abort(CLIENT_DISCONNECTED));
  const result = await withinTime(route.timeoutMs ?? TIMEOUT_MS, disconnected, () =>
    handle(options, route, ctx, disconnected.signal),
  );
  if (result instanceof Reply) {
    writeReply(ctx, result);
    return;
  }
  ctx.status = route.status ?? (route.response ? 200 : 204);
  if (route.response) {
    ctx.set("content-type", "application/json; charset=utf-8");
    ctx.body = JSON.stringify(result);
  } else ctx.body = null;
}

/** Writes a response other than JSON with the declared status. */
export function writeReply(ctx: RestContext, { status, headers, body }: Reply): void {
  ctx.body = body;
  ctx.status = status; // set after the body: Koa sets 204 for an empty body
  ctx.set(headers);
}

async function handle(options: RestOptions, route: Route, ctx: RestContext, signal: AbortSignal): Promise<unknown> {
  const hasCredential = () => ctx.get("authorization") !== "" || credentialOf(options, ctx) !== undefined;
  if (route.auth === "required" || (route.auth === "optional" && hasCredential()))
    ctx.state.caller = await authenticated(options, ctx);
  const renewed = ctx.state.caller && (await options.sessions?.renewedCookie(ctx.state.caller));
  if (renewed !== undefined) ctx.append("set-cookie", renewed);
  const params = readParams(route, ctx["params"] as Record<string, string>);
  const query = readQuery(route, ctx.querystring);
  const json = route.body
    ? await readJson(ctx.req, route.bodyBytesMax ?? BODY_BYTES_MAX, route.exactNumbers)
    : undefined;
  const body = readBody(route, json);
  const idempotency = readIdempotencyKey(route, ctx.path, ctx.req.headers["idempotency-key"], json);
  const input = {
    params,
    query,
    body,
    caller: ctx.state.caller,
    request: {
      requestId: ctx.state.requestId,
      traceId: ctx.state.traceId,
      path: ctx.path,
      headers: ctx.req.headers,
      signal,
      raw: { req: ctx.req, res: ctx.res },
      credentialHash: () => hashOf(credentialOf(options, ctx)),
      authenticateAgain: () => authenticated(options, ctx),
      idempotency,
    },
  };
  return route.storesResponse && idempotency && input.caller
    ? options.respondOnce(input.caller, idempotency, () => route.handler(input))
    : route.handler(input);
}

const hashOf = (bearer: string | undefined): string => (bearer === undefined ? "" : hash("sha256", bearer, "hex"));

async function withinTime<T>(timeoutMs: number, disconnected: AbortController, act: () => Promise<T>): Promise<T> {
  if (timeoutMs === 0) return act();
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(
        new DomainError({
          kind: "unavailable",
          reason: "request_timeout",
          message: `The request took longer than ${timeoutMs / 1000} seconds. Retry it, or request less.`,
        }),
      );
      disconnected.abort();
    }, timeoutMs);
  });
  try {
    return await Promise.race([act(), timeout]);
  } finally {
    clearTimeout(timer);
  }
}
