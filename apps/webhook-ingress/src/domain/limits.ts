/** Spec §8: 256 KB; exactly this many are allowed. */
export const BODY_BYTES_MAX = 256 * 1024;
/** Payloads of code hosts are larger; GitHub sends at most 25 MB. */
export const CODE_HOST_BODY_BYTES_MAX = 25 * 1024 * 1024;

/** A budget of so many within any minute. */
export const WINDOW_MS = 60_000;
/** Spec §8: authenticated deliveries of one webhook, whatever becomes of them. */
export const DELIVERIES_PER_WINDOW = 60;
/** Ours: of one code-host connection, which sends for all its repositories. GitHub does not repeat what was refused. */
export const CODE_HOST_DELIVERIES_PER_WINDOW = 600;
/** Of one address at one webhook (decisions "failed-auth budgets"): then the address is refused unheard. */
export const FAILURES_PER_ADDRESS = 10;
/** Of one webhook: then failures are no longer logged, and answered 429. A valid credential never is. */
export const FAILURES_PER_WEBHOOK = 60;

/** Spec §6.3: pruned is what is older than these days and not among the newest. */
export const KEPT_DAYS = 7;
export const KEPT_NEWEST = 50;

/** Whole seconds until an event at `oldest` has left the window, at least one; waiting them out is enough. */
export const retryAfterSeconds = (oldest: Date, now: Date): number =>
  Math.max(1, Math.ceil((oldest.getTime() + WINDOW_MS - now.getTime()) / 1000));
