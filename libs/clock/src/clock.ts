/** Source of the current time. Rules take a Date; code that needs the current time takes a Clock. */
export interface Clock {
  /** Wall-clock time with millisecond precision (that of `timestamptz(3)`). */
  now(): Date;
  /** Milliseconds since an arbitrary point; never goes back. For durations. */
  monotonicMs(): number;
}

/** The machine's clock. */
export const systemClock: Clock = Object.freeze({
  now: () => new Date(),
  monotonicMs: () => performance.now(),
});

/** A clock that advances only when a test moves it. */
export interface ManualClock extends Clock {
  advance(ms: number): void;
  /** Moves wall-clock time only, as an adjusted machine clock would. */
  set(to: Date | string): void;
}

/** Returns a stopped clock at `start`; `monotonicMs` starts at 0. */
export function manualClock(start: Date | string = "2026-01-01T00:00:00.000Z"): ManualClock {
  let wallMs = new Date(start).getTime();
  let monotonic = 0;
  return {
    now: () => new Date(wallMs),
    monotonicMs: () => monotonic,
    advance(ms) {
      wallMs += ms;
      monotonic += ms;
    },
    set(to) {
      wallMs = new Date(to).getTime();
    },
  };
}
