import type { Sql } from "@millwright/database";
import { DomainError } from "@millwright/errors";
import { METRICS_REQUESTS_PER_WINDOW, retryAfterSeconds } from "../domain/metrics-limit.ts";
import { countMetricsRequest } from "../store/metrics-request-store.ts";

export type LimitMetricsRequestsDeps = {
  /** The gateway's database. */
  readonly sql: Sql;
  readonly clock: { now(): Date };
};

/** Counts a request for metrics, costs or pull requests. Errors: rate_limited. */
export type LimitMetricsRequests = (credentialHash: string, factoryUid: string) => Promise<void>;

/** Returns a function that limits requests per credential and factory. */
export const limitMetricsRequests =
  ({ sql, clock }: LimitMetricsRequestsDeps): LimitMetricsRequests =>
  async (credentialHash, factoryUid) => {
    const now = clock.now();
    const oldest = await countMetricsRequest(sql, { credentialHash, factoryUid }, now);
    if (oldest === undefined) return;
    const seconds = retryAfterSeconds(oldest, now);
    throw new DomainError({
      kind: "rate_limited",
      reason: "rate_limited",
      message:
        `Metrics, costs and pull requests of a factory may be requested ${METRICS_REQUESTS_PER_WINDOW} times a minute per API key. ` +
        `Retry in ${seconds} s.`,
      retryAfterSeconds: seconds,
    });
  };
