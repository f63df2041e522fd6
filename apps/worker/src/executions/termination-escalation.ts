import type { CancelTimer, Timers } from "../time/timers.ts";
import type { Sandboxes } from "./sandboxes.ts";

/**
 * Terminates an execution step by step: the caller aborts its `signal` (the harness stops by protocol), then SIGTERM,
 * then SIGKILL, one step apart. `saveTimeout` is aborted half a step after the kill. `exhausted` resolves another half
 * step later; processes that have not ended by then are not awaited.
 */
export class TerminationEscalation {
  readonly #timers: Timers;
  readonly #stepMs: () => number;
  readonly #sandboxes: Sandboxes;
  #cancelTimer: CancelTimer = () => {};
  #exhaust = (): void => {};
  readonly #saveTimeout = new AbortController();
  /** Resolves after the last step. */
  readonly exhausted = new Promise<void>((resolve) => (this.#exhaust = resolve));
  #isEscalating = false;

  constructor(timers: Timers, stepMs: () => number, sandboxes: Sandboxes) {
    this.#timers = timers;
    this.#stepMs = stepMs;
    this.#sandboxes = sandboxes;
  }

  /** Aborted when the time to save the workspace is over. */
  get saveTimeout(): AbortSignal {
    return this.#saveTimeout.signal;
  }

  /** Starts with the first step. Does nothing if the escalation has already started. */
  escalate(): void {
    if (this.#isEscalating) return;
    this.#isEscalating = true;
    this.#after(1, () => {
      this.#sandboxes.terminate();
      this.#after(1, () => this.killNow());
    });
  }

  /** Kills immediately. */
  killNow(): void {
    this.#isEscalating = true;
    this.#cancelTimer();
    this.#sandboxes.kill();
    this.#after(0.5, () => {
      this.#saveTimeout.abort(new Error("The time to save the workspace is over."));
      this.#after(0.5, this.#exhaust);
    });
  }

  /** Cancels the remaining steps, because everything has ended. */
  cancel(): void {
    this.#isEscalating = true;
    this.#cancelTimer();
  }

  #after(steps: number, act: () => void): void {
    this.#cancelTimer = this.#timers.after(this.#stepMs() * steps, act);
  }
}
