/**
 * Every duration of the run life cycle, in milliseconds. It is one object, so that tests can scale all durations by one
 * factor.
 */
export type Timings = {
  /** Interval at which workers renew their leases. */
  readonly heartbeatMs: number;
  readonly leaseTtlMs: number;
  /** A worker that could not renew for this long blocks all outside effects of its sandboxes. */
  readonly outboundGateCloseMs: number;
  /** How long an offer is open. A run is PENDING for at most 15 s: this and one pass of the reaper. */
  readonly offerTtlMs: number;
  readonly reaperTickMs: number;
  /**
   * After a longer pause of the reaper, workers may have been unable to renew. Its next pass extends all leases and
   * expires none.
   */
  readonly reaperPauseMs: number;
  /** How long the last events of a cancelled run are accepted. */
  readonly stopGraceMs: number;
  readonly setupTimeoutMs: number;
  readonly stallWarningMs: number;
  readonly stallTimeoutMs: number;
  readonly executionTimeoutMs: number;
  /** Duration of one minute of an environment's debug window. */
  readonly debugMinuteMs: number;
  readonly sessionTtlMs: number;
  /** A worker's key is checked again if the last check is older. */
  readonly keyCheckMs: number;
  readonly keepAliveMs: number;
  /** Polling interval of waiters that get no notification; another replica may have written. */
  readonly pollMs: number;
  /** Maximum wait of a Lease poll. */
  readonly leaseWaitMaxMs: number;
  /**
   * How long a queued execution is reserved for the worker that retained its workspace, while that worker could claim
   * it.
   */
  readonly affinityMs: number;
};

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

export const DEFAULT_TIMINGS: Timings = {
  heartbeatMs: 10 * SECOND,
  leaseTtlMs: 45 * SECOND,
  outboundGateCloseMs: 30 * SECOND,
  offerTtlMs: 9 * SECOND,
  reaperTickMs: 5 * SECOND,
  reaperPauseMs: 15 * SECOND,
  stopGraceMs: 30 * SECOND,
  setupTimeoutMs: 15 * MINUTE,
  stallWarningMs: 15 * MINUTE,
  stallTimeoutMs: 30 * MINUTE,
  executionTimeoutMs: 8 * HOUR,
  debugMinuteMs: MINUTE,
  sessionTtlMs: HOUR,
  keyCheckMs: MINUTE,
  keepAliveMs: 15 * SECOND,
  pollMs: 2 * SECOND,
  leaseWaitMaxMs: 20 * SECOND,
  affinityMs: SECOND,
};

/** Returns all durations divided by `divisor`. */
export const scaleTimings = (divisor: number, timings: Timings = DEFAULT_TIMINGS): Timings =>
  Object.fromEntries(
    Object.entries(timings).map(([name, ms]) => [name, Math.max(1, Math.round(ms / divisor))]),
  ) as Timings;

/**
 * Maximum number of retries of a lost execution before its run ends with `resource_unavailable`: before and after the
 * agent started.
 */
export const SETUP_LOSSES_MAX = 3;
export const RUN_LOSSES_MAX = 2;
