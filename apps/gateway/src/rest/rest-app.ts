import { Router } from "@koa/router";
import Koa from "koa";
import { z } from "zod";
import { DomainError, notFound } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { newTraceId } from "@millwright/telemetry";
import { answerRoute } from "./answer-route.ts";
import { authenticated, type RequestListener, type RequestState, type RestOptions } from "./context.ts";
import { openApiDocument, type OpenApiDocument } from "./openapi.ts";
import { asDomainError, problemOf } from "./problem.ts";
import { fullPath, route, type Route } from "./route.ts";
import { SECURITY_HEADERS } from "./security-headers.ts";

export type RestApp = { readonly listener: RequestListener; readonly document: OpenApiDocument };

/** The public HTTP door: every route with routing, authentication, validation, problems, logs and its documentation. */
export function restApp(given: RestOptions): RestApp {
  const options = { ...given, routes: [...given.routes, openApiRoute(() => document)] };
  const document = openApiDocument(options.routes, options.publicUrl);
  const router = routerOf(options);
  const koa = new Koa<RequestState>();
  koa.on("error", () => {}); // a broken connection while answering; everything else is answered and logged below
  koa.use(observe(options));
  koa.use(answerProblems(options));
  koa.use(router.routes() as unknown as Koa.Middleware<RequestState>);
  koa.use(answerNoRoute(options, router));
  const callback = koa.callback();
  return {
    document,
    listener(req, res) {
      const mount = options.mounts?.find(({ prefix }) => req.url?.startsWith(prefix));
      if (mount) mount.listener(req, res);
      else void callback(req, res);
    },
  };
}

/** Public: the document says nothing about anybody's data. */
const openApiRoute = (document: () => OpenApiDocument): Route =>
  route({ method: "GET", path: "/openapi.json", summary: "This document", auth: "none", response: z.looseObject({}), handler: async () => ({ ...document() }) });

function routerOf(options: RestOptions): Router {
  const router = new Router({ exclusive: "specificity", sensitive: true, strict: true });
  const seen = new Set<string>();
  for (const each of options.routes) {
    const path = fullPath(each);
    const identity = `${each.method} ${path.replaceAll(/\{\w+\}/g, "{}")}`;
    if (seen.has(identity)) throw new Error(`declared twice: ${identity}`);
    seen.add(identity);
    router.register(koaPath(path), [each.method], (ctx) => answerRoute(options, each, ctx));
  }
  return router;
}

const koaPath = (path: string): string => path.replaceAll(/\{(\w+)\}/g, ":$1");

const REQUEST_ID = /^[\w.-]{1,64}$/;

/** Request id, trace, headers, and one log line per finished request. */
function observe({ clock, log, metrics }: RestOptions): Koa.Middleware<RequestState> {
  const durations = metrics.histogram("millwright_http_request_duration_seconds", "Duration of public requests.", ["operation", "status"]);
  return async (ctx, next) => {
    const startedMs = clock.monotonicMs();
    const given = ctx.get("x-request-id");
    ctx.state.requestId = REQUEST_ID.test(given) ? given : newUid();
    ctx.state.traceId = /^00-([0-9a-f]{32})-/.exec(ctx.get("traceparent"))?.[1] ?? newTraceId();
    ctx.set({ ...SECURITY_HEADERS, "x-request-id": ctx.state.requestId });
    ctx.res.once("close", () => {
      const { caller, requestId, traceId } = ctx.state;
      const operation = operationOf(ctx.state);
      const durationMs = Math.round(clock.monotonicMs() - startedMs);
      const outcome = !ctx.res.writableFinished ? "aborted" : ctx.status < 400 ? "ok" : ctx.status < 500 ? "refused" : "failed";
      durations.observe({ operation, status: String(ctx.status) }, durationMs / 1000);
      const reason = (ctx.body as { reason?: string } | undefined)?.reason;
      log.info(
        {
          operation, outcome, requestId, traceId, durationMs, status: ctx.status, reason: ctx.status >= 400 ? reason : undefined,
          teamUid: caller?.activeTeamUid, principalType: caller?.principal.type, principalUid: caller?.principal.uid,
        },
        "request finished",
      );
    });
    await next();
  };
}

const operationOf = ({ route: declared }: RequestState): string => (declared ? `${declared.method} ${fullPath(declared)}` : "no route");

/** The one place where an error becomes a public answer. */
function answerProblems({ publicUrl, log }: RestOptions): Koa.Middleware<RequestState> {
  return async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const error = asDomainError(thrown);
      const { route: declared, requestId, traceId } = ctx.state;
      const isCreate = declared?.method === "POST" && (declared.status === 201 || declared.idempotent === true);
      const isUnrepeatable = isCreate && ctx.get("idempotency-key") === "";
      const problem = problemOf(error, { publicUrl, path: ctx.path, traceId, isUnrepeatable });
      if (problem.status >= 500) log.error({ requestId, traceId, operation: operationOf(ctx.state), reason: error.reason, error }, "request failed");
      if (ctx.headerSent || !ctx.writable) return;
      // A body that was not read to its end must not be taken for the next request.
      if (!ctx.req.complete) ctx.set("connection", "close");
      ctx.status = problem.status;
      ctx.set(problem.headers);
      ctx.body = problem.body;
    }
  };
}

/** Unknown path or method. Below /api the anonymous learn nothing: 401 whether it exists or not. */
function answerNoRoute(options: RestOptions, router: Router): Koa.Middleware<RequestState> {
  return async (ctx) => {
    const matches = router.match(ctx.path, ctx.method).path;
    const isPublic = options.routes.some((each) => each.auth === "none" && matches.some((layer) => layer.path === koaPath(fullPath(each))));
    if (ctx.path.startsWith("/api/") && !isPublic) ctx.state.caller = await authenticated(options, ctx);
    const allowed = [...new Set(matches.flatMap((layer) => layer.methods))].toSorted();
    if (allowed.length === 0) throw notFound("path");
    ctx.set("allow", allowed.join(", "));
    throw new DomainError({ kind: "wrong_method", reason: "method_not_allowed", message: `Use ${allowed.join(" or ")}.` });
  };
}
