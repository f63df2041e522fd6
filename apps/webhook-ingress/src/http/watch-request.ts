import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "@millwright/clock";
import { openRequest } from "@millwright/service";
import type { Logger, Metrics, Scope, Tracer } from "@millwright/telemetry";

export type Watch = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly tracer: Tracer | undefined;
};

/**
 * Begins a request: its id in the answer, its trace in the scope; at its end one log line, one observation, and the end of its
 * span. They name the template of the path: an address may be a credential, and so may anything else that a sender writes.
 */
export function watchRequest(
  { clock, log, metrics, tracer }: Watch,
  req: IncomingMessage,
  res: ServerResponse,
  route: string,
  outcomeOf: () => string,
): { requestId: string; scope: Scope } {
  const durations = metrics.histogram("millwright_http_request_duration_seconds", "Duration of public requests.", [
    "method",
    "route",
    "status",
  ]);
  const deliveries = metrics.counter(
    "millwright_webhook_requests_total",
    "Requests to webhook addresses, by what became of them.",
    ["outcome"],
  );
  const startedMs = clock.monotonicMs();
  const { requestId, scope, span } = openRequest(tracer, req, res);
  res.once("close", () => {
    const status = res.statusCode;
    const outcome = res.writableFinished ? outcomeOf() : "aborted";
    const durationMs = Math.round(clock.monotonicMs() - startedMs);
    durations.observe(
      { method: "POST", route, status: res.writableFinished ? `${Math.floor(status / 100)}xx` : "aborted" },
      durationMs / 1000,
    );
    deliveries.inc({ outcome });
    span.rename(`POST ${route}`);
    span.set({
      "http.request.method": req.method,
      "http.route": route,
      "http.response.status_code": status,
      "millwright.request.id": requestId,
    });
    if (status >= 500) span.fail(String(status));
    span.end();
    log.info({ ...scope.fields, operation: `POST ${route}`, outcome, durationMs, status }, "request finished");
  });
  return { requestId, scope };
}
