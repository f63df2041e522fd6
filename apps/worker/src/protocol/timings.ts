/**
 * The worker's timings in milliseconds. All are derived from the platform's values at registration, so that they scale
 * together.
 */
export type Timings = {
  readonly heartbeatMs: number;
  readonly leaseTtlMs: number;
  readonly offerTtlMs: number;
  /** The outbound gate closes this long after the last successful renewal was sent. */
  readonly outboundGateCloseMs: number;
  /** One step of the termination escalation: protocol stop, SIGTERM, SIGKILL. */
  readonly escalationStepMs: number;
  /** How long a stopped execution may take to report its last events and return its lease. */
  readonly returnMs: number;
  /** Sandboxes are killed when the outbound gate has been closed for this long. */
  readonly closedKillMs: number;
  /** How often the gates are checked. */
  readonly watchMs: number;
  readonly retryFirstMs: number;
  readonly retryMaxMs: number;
  /** How long one poll for work waits. */
  readonly leaseWaitMs: number;
  /** A directive stream without any message (including keep-alives) for this long counts as failed. */
  readonly streamSilenceMs: number;
  readonly heartbeatTimeoutMs: number;
  readonly callTimeoutMs: number;
};

type Announced = Pick<Timings, "heartbeatMs" | "leaseTtlMs" | "offerTtlMs" | "outboundGateCloseMs">;

/**
 * Derives all timings from the announced ones. A heartbeat of 10 s gives the documented numbers (5 s escalation steps,
 * 10 min, 0.5 s to 30 s).
 */
export const timingsFrom = ({ heartbeatMs, leaseTtlMs, offerTtlMs, outboundGateCloseMs }: Announced): Timings => ({
  heartbeatMs,
  leaseTtlMs,
  offerTtlMs,
  outboundGateCloseMs,
  escalationStepMs: heartbeatMs / 2,
  returnMs: Math.max(heartbeatMs / 2, 2_000),
  closedKillMs: heartbeatMs * 60,
  watchMs: heartbeatMs / 5,
  retryFirstMs: heartbeatMs / 20,
  retryMaxMs: heartbeatMs * 3,
  leaseWaitMs: heartbeatMs * 2,
  streamSilenceMs: heartbeatMs * 4.5,
  // The minimums allow tests to scale timings down: these two detect calls that hang, not calls that wait.
  heartbeatTimeoutMs: Math.max(heartbeatMs, 1_000),
  callTimeoutMs: Math.max(heartbeatMs * 3, 5_000),
});

/** Used before the platform has announced its own values. */
export const DEFAULT_TIMINGS = timingsFrom({
  heartbeatMs: 10_000,
  leaseTtlMs: 45_000,
  offerTtlMs: 9_000,
  outboundGateCloseMs: 30_000,
});
