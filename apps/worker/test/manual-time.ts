import { manualClock } from "@millwright/clock";
import type { Timers } from "../src/time/timers.ts";

/** Returns a clock and timers that advance only when the test advances them. */
export function manualTime() {
  const clock = manualClock();
  let due: { atMs: number; run: () => void }[] = [];
  const timers: Timers = {
    after(ms, run) {
      const entry = { atMs: clock.monotonicMs() + ms, run };
      due.push(entry);
      return () => {
        due = due.filter((other) => other !== entry);
      };
    },
  };
  return {
    clock,
    timers,
    /** Advances both clocks and fires due timers in order. */
    advance(ms: number) {
      const untilMs = clock.monotonicMs() + ms;
      for (;;) {
        const next = due.filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
        if (!next) break;
        due = due.filter((other) => other !== next);
        clock.advance(Math.max(0, next.atMs - clock.monotonicMs()));
        next.run();
      }
      clock.advance(untilMs - clock.monotonicMs());
    },
  };
}
