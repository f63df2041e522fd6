import type { CancelTimer, Timers } from "../time/timers.ts";
import type { Sandboxes } from "./sandboxes.ts";

/**
 * Terminates an execution step by step: the caller aborts its `signal` (the harness stops by protocol), then SIGTERM,
 * then SIGKILL, one step apart. `exhausted` resolves one step after the kill; processes that have not ended by then are
 * not awaited.
 */
export class TerminationEscalation {
  readonly #timers: Timers;
  readonly #stepMs: () => number;
  readonly #sandboxes: Sandboxes;
  #cancelTimer: CancelTimer = () => {};
  #exhaust = (): void => {};
  /** Resolves after the last step. */
  readonly exhausted = new Promise<void>((resolve) => (this.#exhaust = resolve));
  #isEscalating = false;

  constructor(timers: Timers, stepMs: () => number, sandboxes: Sandboxes) {
    this.#timers = timers;
    this.#stepMs = stepMs;
    this.#sandboxes = sandboxes;
  }

  /** Starts with the first step. Does nothing if the escalation has already started. */
  escalate(): void {
    if (this.#isEscalating) return;
    this.#isEscalating = true;
    this.#afterStep(() => {
      this.#sandboxes.terminate();
      this.#afterStep(() => this.killNow());
    });
  }

  /** Kills immediately. */
  killNow(): void {
    this.#isEscalating = true;
    this.#cancelTimer();
    this.#sandboxes.kill();
    this.#afterStep(this.#exhaust);
  }

  /** Cancels the remaining steps, because everything has ended. */
  cancel(): void {
    this.#isEscalating = true;
    this.#cancelTimer();
  }

  #afterStep(step: () => void): void {
    this.#cancelTimer = this.#timers.after(this.#stepMs(), step);
  }
}
