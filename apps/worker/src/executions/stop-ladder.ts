import type { CancelTimer, Timers } from "../time.ts";
import type { Sandboxes } from "./sandboxes.ts";

/**
 * What happens to an execution that shall end: its `signal` is aborted by the caller (the harness stops by protocol), then TERM, then kill,
 * one step apart. Resolves one step after the kill: whoever has not ended by then is not waited for.
 */
export class StopLadder {
  readonly #timers: Timers;
  readonly #stepMs: () => number;
  readonly #sandboxes: Sandboxes;
  #cancelTimer: CancelTimer = () => {};
  #exhaust = (): void => {};
  /** Resolves when the ladder has been climbed to its end. */
  readonly exhausted = new Promise<void>((resolve) => (this.#exhaust = resolve));
  #isClimbing = false;

  constructor(timers: Timers, stepMs: () => number, sandboxes: Sandboxes) {
    this.#timers = timers;
    this.#stepMs = stepMs;
    this.#sandboxes = sandboxes;
  }

  /** Begins with the patient steps; does nothing when already begun. */
  climb(): void {
    if (this.#isClimbing) return;
    this.#isClimbing = true;
    this.#afterStep(() => {
      this.#sandboxes.terminate();
      this.#afterStep(() => this.killNow());
    });
  }

  /** The last step, at once. */
  killNow(): void {
    this.#isClimbing = true;
    this.#cancelTimer();
    this.#sandboxes.kill();
    this.#afterStep(this.#exhaust);
  }

  /** Everything has ended: no step is due any more. */
  leave(): void {
    this.#isClimbing = true;
    this.#cancelTimer();
  }

  #afterStep(step: () => void): void {
    this.#cancelTimer = this.#timers.after(this.#stepMs(), step);
  }
}
