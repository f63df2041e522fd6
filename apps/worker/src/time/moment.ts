import type { Clock } from "@millwright/clock";

/**
 * A point in time by both clocks: the monotonic clock stops while a laptop sleeps, and the wall clock may be set back.
 */
export type Moment = { readonly monotonicMs: number; readonly wallMs: number };

export const momentOf = (clock: Clock): Moment => ({ monotonicMs: clock.monotonicMs(), wallMs: clock.now().getTime() });

/**
 * Returns the milliseconds since `then` by the clock that shows more, so that the gate closes early rather than late.
 */
export const elapsedMs = (clock: Clock, then: Moment): number => {
  const now = momentOf(clock);
  return Math.max(now.monotonicMs - then.monotonicMs, now.wallMs - then.wallMs);
};
