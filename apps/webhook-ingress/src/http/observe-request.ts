import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "@millwright/clock";
import { openRequest } from "@millwright/service";
import type { Logger, Metrics, Scope, Tracer } from "@millwright/telemetry";

export type RequestObservers = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly tracer: Tracer | undefined;
};

/**
 * Opens a request: sets its id in the response and its trace in the scope. When it ends, writes one log line and one
 * observation and ends its span. They contain the template of the path, because an address may be a credential.
 */
export function observeRequest(
  { clock, log, metrics, tracer }: RequestObservers,
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
    "Requests to webhook addresses, by outcome.",
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
