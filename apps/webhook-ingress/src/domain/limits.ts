/** 256 KB, inclusive. */
export const BODY_BYTES_MAX = 256 * 1024;
/** Payloads of code hosts are larger; GitHub sends at most 25 MB. */
export const CODE_HOST_BODY_BYTES_MAX = 25 * 1024 * 1024;

/** The sliding window of the limits below. */
export const WINDOW_MS = 60_000;
/** Authenticated deliveries per webhook, whatever their outcome. */
export const DELIVERIES_PER_WINDOW = 60;
/** Per code-host connection, which sends for all its repositories. GitHub does not retry refused deliveries. */
export const CODE_HOST_DELIVERIES_PER_WINDOW = 600;
/** Per address and webhook: beyond it, the address is refused without authentication. */
export const FAILURES_PER_ADDRESS = 10;
/** Per webhook: beyond it, failures are not logged and return 429. A valid credential is never affected. */
export const FAILURES_PER_WEBHOOK = 60;

/** Entries older than this are pruned unless they are among the newest. */
export const RETENTION_DAYS = 7;
export const RETAINED_NEWEST = 50;

/** Returns the whole seconds until a hit at `oldest` leaves the window, at least one. */
export const retryAfterSeconds = (oldest: Date, now: Date): number =>
  Math.max(1, Math.ceil((oldest.getTime() + WINDOW_MS - now.getTime()) / 1000));
