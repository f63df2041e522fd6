import { timingSafeEqual } from "node:crypto";
import { DomainError } from "@millwright/errors";
import type { Metrics } from "@millwright/telemetry";
import { Reply, route, type Route } from "../rest/index.ts";
import { hashOfKey } from "../domain/credentials.ts";

export type MetricsRouteDeps = {
  readonly metrics: Metrics;
  /** A key for scrapers that opens nothing else; absent: platform administrators only. */
  readonly metricsKey?: string | undefined;
};

/**
 * The metrics of the whole platform on its public port, for a platform without a port for operations. They name no customer, and show
 * how much all teams use, so they need the metrics key or a platform administrator's key.
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

/** Hashes have one length, so comparing them reveals nothing of the key. */
const isEqual = (given: string, expected: string): boolean =>
  timingSafeEqual(Buffer.from(hashOfKey(given)), Buffer.from(hashOfKey(expected)));

const refused = (): DomainError =>
  new DomainError({
    kind: "permission_denied",
    reason: "not_authorized",
    message:
      "Reading metrics requires a platform administrator's key for all teams, or the key in MILLWRIGHT_METRICS_KEY.",
  });
