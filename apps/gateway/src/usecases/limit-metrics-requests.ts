import { DomainError } from "@millwright/errors";
import { METRICS_REQUESTS_PER_WINDOW, retryAfterSeconds } from "../domain/metrics-limit.ts";

export type LimitMetricsRequestsDeps = {
  /** Counts a request. Returns the oldest request of the window if the limit is reached. */
  readonly count: (
    requester: { readonly credentialHash: string; readonly factoryUid: string },
    now: Date,
  ) => Promise<Date | undefined>;
  readonly clock: { now(): Date };
};

/** Counts a request for metrics, costs or pull requests. Errors: rate_limited. */
export type LimitMetricsRequests = (credentialHash: string, factoryUid: string) => Promise<void>;

/** Returns a function that limits requests per credential and factory. */
export const limitMetricsRequests =
  ({ count, clock }: LimitMetricsRequestsDeps): LimitMetricsRequests =>
  async (credentialHash, factoryUid) => {
    const now = clock.now();
    const oldest = await count({ credentialHash, factoryUid }, now);
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
