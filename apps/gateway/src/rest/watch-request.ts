import type { IncomingMessage, ServerResponse } from "node:http";
import type { Caller } from "@millwright/caller";
import { openRequest } from "@millwright/service";
import type { Scope } from "@millwright/telemetry";
import type { RestOptions } from "./context.ts";

/** Properties of an ended request. `method` and `route` are absent if no route matched. */
export type RequestFacts = {
  readonly method?: string;
  /** Path template, such as "/api/v1/agent/runs/{runId}". Never the requested path, which has unbounded cardinality. */
  readonly route?: string;
  readonly caller?: Caller;
  readonly reason?: string;
};

/** Returns the name of a request in logs and spans. */
export const operationOf = (method: string | undefined, route: string | undefined): string =>
  route === undefined ? "no route" : `${method ?? "ANY"} ${route}`;

/**
 * Starts the request with `openRequest`. When the response is closed, writes one log line, observes the duration and
 * ends the span.
 */
export function watchRequest(
  { clock, log, metrics, tracer }: Pick<RestOptions, "clock" | "log" | "metrics" | "tracer">,
  req: IncomingMessage,
  res: ServerResponse,
  factsOf: () => RequestFacts,
): { requestId: string; scope: Scope } {
  const durations = metrics.histogram("millwright_http_request_duration_seconds", "Duration of public requests.", [
    "method",
    "route",
    "status",
  ]);
  const startedMs = clock.monotonicMs();
  const { requestId, scope, span } = openRequest(tracer, req, res);
  res.once("close", () => {
    const { method, route, caller, reason } = factsOf();
    const operation = operationOf(method, route);
    const status = res.statusCode;
    const outcome = !res.writableFinished ? "aborted" : status < 400 ? "ok" : status < 500 ? "refused" : "failed";
    const durationMs = Math.round(clock.monotonicMs() - startedMs);
    durations.observe(
      {
        method: method ?? "any",
        route: route ?? "none",
        status: outcome === "aborted" ? "aborted" : `${Math.floor(status / 100)}xx`,
      },
      durationMs / 1000,
    );
    span.rename(operation);
    span.set({
      "http.request.method": req.method,
      "http.route": route,
      "http.response.status_code": status,
      "error.type": status >= 400 ? (reason ?? String(status)) : undefined,
      "millwright.request.id": requestId,
      "millwright.team.uid": caller?.teams.find(({ teamUid }) => teamUid === caller.activeTeamUid)?.teamUid,
    });
    if (status >= 500) span.fail(reason ?? String(status));
    span.end();
    log.info(
      {
        ...scope.fields,
        operation,
        outcome,
        durationMs,
        status,
        reason,
        teamUid: caller?.activeTeamUid,
        principalType: caller?.principal.type,
        principalUid: caller?.principal.uid,
      },
      "request finished",
    );
  });
  return { requestId, scope };
}
