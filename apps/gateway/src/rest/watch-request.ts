import type { IncomingMessage, ServerResponse } from "node:http";
import type { Caller } from "@millwright/caller";
import { openRequest } from "@millwright/service";
import type { Scope } from "@millwright/telemetry";
import type { RestOptions } from "./context.ts";

/** What is known of a request when it has ended. Absent method and route: nobody serves such a path. */
export type RequestFacts = {
  readonly method?: string;
  /** The template, such as "/api/v1/agent/runs/{runId}": never the path itself. */
  readonly route?: string;
  readonly caller?: Caller;
  readonly reason?: string;
};

/** How a request is called in logs and spans. */
export const operationOf = (method: string | undefined, route: string | undefined): string =>
  route === undefined ? "no route" : `${method ?? "ANY"} ${route}`;

/**
 * Begins a request: its id (the client's own when well-formed) in the answer, its trace (the client's, when it sent one) in the scope; at its
 * end one log line, one observation, and the end of its span.
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
