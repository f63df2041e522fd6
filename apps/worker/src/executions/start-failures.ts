import { retryDelayMs } from "../protocol/retrying.ts";
import type { Timings } from "../protocol/timings.ts";

/**
 * Counts consecutive failures to start a sandbox on this worker, so that a broken worker does not use up the attempts
 * of all runs.
 */
export class StartFailures {
  #inARow = 0;

  /** Resets the count after a sandbox has started. */
  reset(): void {
    this.#inARow = 0;
  }

  /** Counts a failure. Returns the delay in milliseconds before its run is returned. */
  add(timings: Pick<Timings, "retryFirstMs" | "retryMaxMs">): number {
    return retryDelayMs(timings, this.#inARow++);
  }
}
