/** Every time span of the run life cycle, in milliseconds. One object, so that tests can run the whole at a smaller scale. */
export type Timings = {
  /** Workers renew their leases this often. */
  readonly heartbeatMs: number;
  readonly leaseTtlMs: number;
  /** A worker that could not renew for this long lets nothing out of its sandboxes. */
  readonly doorsCloseMs: number;
  /** How long an offer stays open. A run is PENDING for at most 15 s: this and one round of the reaper. */
  readonly offerTtlMs: number;
  readonly reaperTickMs: number;
  /** After a pause of the reaper longer than this nobody could renew: the next look extends leases and reaps nothing. */
  readonly reaperPauseMs: number;
  /** Tail events of a cancelled run are taken for this long. */
  readonly stopGraceMs: number;
  readonly setupTimeoutMs: number;
  readonly stallWarningMs: number;
  readonly stallTimeoutMs: number;
  readonly executionTimeoutMs: number;
  /** A minute of an environment's debug window. */
  readonly debugMinuteMs: number;
  readonly sessionTtlMs: number;
  /** A worker's key is checked again when the last check is older. */
  readonly keyCheckMs: number;
  readonly keepAliveMs: number;
  /** Waits that were not rung look again after this long (another replica may have written). */
  readonly pollMs: number;
  /** The longest a Lease poll waits. */
  readonly leaseWaitMaxMs: number;
  /** For so long a queued execution is left to the worker that keeps its workspace, as long as that could take it. */
  readonly affinityMs: number;
};

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

export const DEFAULT_TIMINGS: Timings = {
  heartbeatMs: 10 * SECOND,
  leaseTtlMs: 45 * SECOND,
  doorsCloseMs: 30 * SECOND,
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

/** All spans divided by `divisor`, in the same ratio to each other. */
export const scaleTimings = (divisor: number, timings: Timings = DEFAULT_TIMINGS): Timings =>
  Object.fromEntries(
    Object.entries(timings).map(([name, ms]) => [name, Math.max(1, Math.round(ms / divisor))]),
  ) as Timings;

/** How often a lost execution is tried again before its run ends with `resource_unavailable`. */
export const SETUP_LOSSES_MAX = 3;
export const RUN_LOSSES_MAX = 2;
