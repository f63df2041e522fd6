import { timingSafeEqual } from "node:crypto";
import { DomainError } from "@millwright/errors";
import type { Metrics } from "@millwright/telemetry";
import { Reply, route, type Route } from "../../rest/index.ts";
import { hashOfKey } from "../../identity/index.ts";

export type MetricsRouteDeps = {
  readonly metrics: Metrics;
  /** A key that permits only reading metrics. Absent: only platform administrators can read them. */
  readonly metricsKey?: string | undefined;
};

/**
 * Serves the platform's metrics on the public port, for installations without an operations port. The metrics name no
 * customer but show the usage of all teams, so they require the metrics key or a platform administrator's key.
 */
export const metricsRoute = ({ metrics, metricsKey }: MetricsRouteDeps): Route =>
  route({
    method: "GET",
    path: "/metrics",
    root: true,
    auth: "none",
    summary: "Metrics in the text format of Prometheus",
    handler: async ({ request }) => {
      const isScraper =
        metricsKey !== undefined && isEqual(request.headers.authorization ?? "", `Bearer ${metricsKey}`);
      if (!isScraper && !(await request.authenticateAgain()).platformAdmin) throw refused();
      return new Reply(200, await metrics.text(), { "content-type": metrics.contentType, "cache-control": "no-store" });
    },
  });

/**
 * Compares hashes, because `timingSafeEqual` requires inputs of equal length. The duration reveals nothing about the
 * key.
 */
const isEqual = (given: string, expected: string): boolean =>
  timingSafeEqual(Buffer.from(hashOfKey(given)), Buffer.from(hashOfKey(expected)));

const refused = (): DomainError =>
  new DomainError({
    kind: "permission_denied",
    reason: "not_authorized",
    message:
      "Reading metrics requires a platform administrator's key for all teams, or the key in MILLWRIGHT_METRICS_KEY.",
  });
