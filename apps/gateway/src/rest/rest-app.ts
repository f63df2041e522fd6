import { Router } from "@koa/router";
import Koa from "koa";
import { z } from "zod";
import { asDomainError, DomainError, isDependencyAbsent, notFound, problemOf } from "@millwright/errors";
import { inScope } from "@millwright/telemetry";
import { handleRoute, writeReply } from "./handle-route.ts";
import {
  authenticated,
  type RequestListener,
  type RestContext,
  type RequestState,
  type RestOptions,
} from "./context.ts";
import { openApiDocument, type OpenApiDocument } from "./openapi.ts";
import { fullPath, route, type Route } from "./route.ts";
import { SECURITY_HEADERS } from "./security-headers.ts";
import { operationOf, watchRequest } from "./watch-request.ts";

export type RestApp = {
  readonly listener: RequestListener;
  /** Created at the first use, because it takes longer than the rest of a start. */
  readonly document: OpenApiDocument;
};

/**
 * Creates the public HTTP server application: routing, authentication, validation, error responses, request logs and
 * the OpenAPI document of all routes. Throws an Error if two routes have the same method and path.
 */
export function restApp(given: RestOptions): RestApp {
  const options = { ...given, routes: [...given.routes, openApiRoute(() => app.document)] };
  let document: OpenApiDocument | undefined;
  const router = routerOf(options);
  const koa = new Koa<RequestState>();
  koa.on("error", () => {}); // emitted when a connection breaks during a response; `writeProblems` handles all other errors
  koa.use(observe(options));
  koa.use(writeProblems(options));
  koa.use(router.routes() as unknown as Koa.Middleware<RequestState>);
  koa.use(rejectUnknownRoute(options, router));
  const callback = koa.callback();
  const app: RestApp = {
    get document() {
      return (document ??= openApiDocument(options.routes, options.publicUrl));
    },
    listener(req, res) {
      const mount = options.mounts?.find(({ prefix }) => req.url?.startsWith(prefix));
      if (!mount) void callback(req, res);
      else if (mount.isRecorded) mount.listener(req, res);
      else
        inScope(watchRequest(options, req, res, () => ({ route: mount.prefix })).scope, () => mount.listener(req, res));
    },
  };
  return app;
}

/** Requires no credential: the document contains no customer data. */
const openApiRoute = (document: () => OpenApiDocument): Route =>
  route({
    method: "GET",
    path: "/openapi.json",
    summary: "This document",
    auth: "none",
    response: z.looseObject({}),
    handler: async () => ({ ...document() }),
  });

function routerOf(options: RestOptions): Router {
  const router = new Router({ exclusive: "specificity", sensitive: true, strict: true });
  const seen = new Set<string>();
  for (const each of options.routes) {
    const path = fullPath(each);
    const identity = `${each.method} ${path.replaceAll(/\{\w+\}/g, "{}")}`;
    if (seen.has(identity)) throw new Error(`declared twice: ${identity}`);
    seen.add(identity);
    router.register(koaPath(path), [each.method], (ctx) => handleRoute(options, each, ctx));
  }
  return router;
}

const koaPath = (path: string): string => path.replaceAll(/\{(\w+)\}/g, ":$1");

/** Runs the rest of the request in its telemetry scope, and records the request when it has ended. */
const observe =
  (options: RestOptions): Koa.Middleware<RequestState> =>
  async (ctx, next) => {
    const { requestId, scope } = watchRequest(options, ctx.req, ctx.res, () => {
      const { route: declared, caller } = ctx.state;
      const { reason } = (ctx.body ?? {}) as { reason?: string };
      return {
        method: declared?.method,
        route: declared && fullPath(declared),
        caller,
        reason: ctx.status >= 400 ? reason : undefined,
      };
    });
    ctx.state.requestId = requestId;
    ctx.state.traceId = scope.trace.traceId;
    ctx.set(SECURITY_HEADERS);
    await inScope(scope, next);
  };

/** Translates errors into problem responses. No other code of the REST layer does. */
function writeProblems({ publicUrl, log }: RestOptions): Koa.Middleware<RequestState> {
  return async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const error = asDomainError(thrown);
      const { route: declared, traceId } = ctx.state;
      const isCreate = declared?.method === "POST" && (declared.status === 201 || declared.idempotent === true);
      const isUnrepeatable =
        (isCreate && ctx.get("idempotency-key") === "") || declared?.automaticRetry === "not_after_5xx";
      const isNeverRetried = declared?.automaticRetry === "never";
      const problem = problemOf(error, { publicUrl, path: ctx.path, traceId, isUnrepeatable, isNeverRetried });
      if (problem.status >= 500)
        log[isDependencyAbsent(error) ? "warn" : "error"](
          { operation: operationOf(declared?.method, declared && fullPath(declared)), reason: error.reason, error },
          "request failed",
        );
      if (ctx.headerSent || !ctx.writable) return;
      // Closes the connection: unread bytes of this body would be parsed as the next request.
      if (!ctx.req.complete) ctx.set("connection", "close");
      ctx.status = problem.status;
      ctx.set(problem.headers);
      ctx.body = problem.body;
    }
  };
}

/** Paths that are never pages, although their routes and mounts may be absent. */
const NOT_PAGES = /^\/(?:api|assets|blobs|docs|errors|metrics|rpc|session|webhooks)(?:\/|$)/;

const isNavigation = (ctx: RestContext): boolean =>
  (ctx.method === "GET" || ctx.method === "HEAD") &&
  !NOT_PAGES.test(ctx.path) &&
  /\btext\/html\b/.test(ctx.get("accept"));

/**
 * Responds to unknown paths (404) and methods (405). Below `/api/`, a request without a valid credential gets 401
 * whether the path exists or not, except for public paths.
 */
function rejectUnknownRoute(options: RestOptions, router: Router): Koa.Middleware<RequestState> {
  return async (ctx) => {
    const matches = router.match(ctx.path, ctx.method).path;
    const isPublic = options.routes.some(
      (each) => each.auth === "none" && matches.some((layer) => layer.path === koaPath(fullPath(each))),
    );
    if (ctx.path.startsWith("/api/") && !isPublic) ctx.state.caller = await authenticated(options, ctx);
    const allowed = [...new Set(matches.flatMap((layer) => layer.methods))].toSorted();
    if (allowed.length === 0 && options.navigationPage && isNavigation(ctx)) {
      writeReply(ctx, await options.navigationPage());
      return;
    }
    if (allowed.length === 0) throw notFound("path");
    ctx.set("allow", allowed.join(", "));
    throw new DomainError({
      kind: "wrong_method",
      reason: "method_not_allowed",
      message: `The method ${ctx.method} is not allowed here. Use ${allowed.join(" or ")}.`,
    });
  };
}
