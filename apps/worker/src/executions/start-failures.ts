import { retryDelayMs } from "../protocol/retrying.ts";
import type { Timings } from "../protocol/timings.ts";

/** Counts how many sandboxes in a row did not start on this worker, so that a broken worker does not use up the attempts of all runs. */
export class StartFailures {
  #inARow = 0;

  /** A sandbox has started. */
  reset(): void {
    this.#inARow = 0;
  }

  /** Counts a failure. Returns how long to wait, in milliseconds, before its run is returned. */
  add(timings: Pick<Timings, "retryFirstMs" | "retryMaxMs">): number {
    return retryDelayMs(timings, this.#inARow++);
  }
}
