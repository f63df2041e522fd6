import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "@millwright/clock";
import { holdsCredential } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { openScope, parseTraceparent, TRACEPARENT, type Logger, type Metrics, type Scope, type Tracer } from "@millwright/telemetry";

const REQUEST_ID = /^[\w.-]{1,64}$/;

export type Watch = { readonly clock: Clock; readonly log: Logger; readonly metrics: Metrics; readonly tracer: Tracer | undefined };

/**
 * Begins a request: its id in the answer, its trace in the scope; at its end one log line, one observation, and the end of its
 * span. They name the template of the path: an address may be a credential, and so may anything else that a sender writes.
 */
export function watchRequest({ clock, log, metrics, tracer }: Watch, req: IncomingMessage, res: ServerResponse, route: string, outcomeOf: () => string): { requestId: string; scope: Scope } {
  const durations = metrics.histogram("millwright_http_request_duration_seconds", "Duration of public requests.", ["method", "route", "status"]);
  const deliveries = metrics.counter("millwright_webhook_requests_total", "Requests to webhook addresses, by what became of them.", ["outcome"]);
  const startedMs = clock.monotonicMs();
  const given = req.headers["x-request-id"];
  const requestId = typeof given === "string" && REQUEST_ID.test(given) && !holdsCredential(given) ? given : newUid();
  const traceparent = req.headers[TRACEPARENT];
  const { scope, span } = openScope("HTTP", { tracer, kind: "server", parent: parseTraceparent(typeof traceparent === "string" ? traceparent : undefined), fields: { requestId } });
  res.setHeader("x-request-id", requestId);
  res.once("close", () => {
    const status = res.statusCode;
    const outcome = res.writableFinished ? outcomeOf() : "aborted";
    const durationMs = Math.round(clock.monotonicMs() - startedMs);
    durations.observe({ method: "POST", route, status: res.writableFinished ? `${Math.floor(status / 100)}xx` : "aborted" }, durationMs / 1000);
    deliveries.inc({ outcome });
    span.rename(`POST ${route}`);
    span.set({ "http.request.method": req.method, "http.route": route, "http.response.status_code": status, "millwright.request.id": requestId });
    if (status >= 500) span.fail(String(status));
    span.end();
    log.info({ ...scope.fields, operation: `POST ${route}`, outcome, durationMs, status }, "request finished");
  });
  return { requestId, scope };
}
