import type { Clock } from "@millwright/clock";
import { elapsedMs, type Moment } from "../time/moment.ts";

/**
 * Records when one lease was last known to be valid. It is evaluated on use, not by a timer, so a worker that was
 * frozen finds its gate closed at the first check. The time counts from when the successful renewal was *sent*, because
 * the platform may count from then on.
 */
export class LeaseClock {
  readonly #clock: Clock;
  readonly #gateCloseMs: () => number;
  #renewed: Moment;
  #waiting: (() => void)[] = [];

  constructor(clock: Clock, gateCloseMs: () => number, acceptSent: Moment) {
    this.#clock = clock;
    this.#gateCloseMs = gateCloseMs;
    this.#renewed = acceptSent;
  }

  /**
   * Records a successful renewal that was sent at `sent`. Responses may arrive out of order; an older one has no
   * effect.
   */
  renewed(sent: Moment): void {
    if (sent.monotonicMs >= this.#renewed.monotonicMs) this.#renewed = sent;
    if (!this.isOpen()) return;
    for (const resume of this.#waiting.splice(0)) resume();
  }

  isOpen(): boolean {
    return elapsedMs(this.#clock, this.#renewed) < this.#gateCloseMs();
  }

  /** Returns for how many milliseconds the gate has been closed; 0 while it is open. */
  closedForMs(): number {
    return Math.max(0, elapsedMs(this.#clock, this.#renewed) - this.#gateCloseMs());
  }

  /** Calls `resume` once when the gate reopens. The returned function unregisters it. */
  onReopened(resume: () => void): () => void {
    this.#waiting.push(resume);
    return () => {
      this.#waiting = this.#waiting.filter((waiting) => waiting !== resume);
    };
  }
}
