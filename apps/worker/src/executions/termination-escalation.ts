import type { CancelTimer, Timers } from "../time.ts";
import type { Sandboxes } from "./sandboxes.ts";

/**
 * What happens to an execution that shall end: its `signal` is aborted by the caller (the harness stops by protocol), then TERM, then kill,
 * one step apart. Resolves one step after the kill: whoever has not ended by then is not waited for.
 */
export class TerminationEscalation {
  readonly #timers: Timers;
  readonly #stepMs: () => number;
  readonly #sandboxes: Sandboxes;
  #cancelTimer: CancelTimer = () => {};
  #exhaust = (): void => {};
  /** Resolves when the ladder has been climbed to its end. */
  readonly exhausted = new Promise<void>((resolve) => (this.#exhaust = resolve));
  #isEscalating = false;

  constructor(timers: Timers, stepMs: () => number, sandboxes: Sandboxes) {
    this.#timers = timers;
    this.#stepMs = stepMs;
    this.#sandboxes = sandboxes;
  }

  /** Begins with the patient steps; does nothing when already begun. */
  escalate(): void {
    if (this.#isEscalating) return;
    this.#isEscalating = true;
    this.#afterStep(() => {
      this.#sandboxes.terminate();
      this.#afterStep(() => this.killNow());
    });
  }

  /** The last step, at once. */
  killNow(): void {
    this.#isEscalating = true;
    this.#cancelTimer();
    this.#sandboxes.kill();
    this.#afterStep(this.#exhaust);
  }

  /** Everything has ended: no step is due any more. */
  cancel(): void {
    this.#isEscalating = true;
    this.#cancelTimer();
  }

  #afterStep(step: () => void): void {
    this.#cancelTimer = this.#timers.after(this.#stepMs(), step);
  }
}
