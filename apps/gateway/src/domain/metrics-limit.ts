/**
 * Requests of one credential for one factory per window, counted over all endpoints for metrics, costs and pull
 * requests.
 */
export const METRICS_REQUESTS_PER_WINDOW = 60;
export const METRICS_WINDOW_MS = 60_000;

/** Returns the whole seconds until a request at `oldest` has left the window, at least 1. */
export const retryAfterSeconds = (oldest: Date, now: Date): number =>
  Math.max(1, Math.ceil((oldest.getTime() + METRICS_WINDOW_MS - now.getTime()) / 1000));
