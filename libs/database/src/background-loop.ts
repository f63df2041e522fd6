export type BackgroundLoopOptions = {
  /** Runs one step; returns "again" if there is more to do at once. */
  step: () => Promise<"again" | "idle">;
  /** How long an idle loop sleeps without a wake-up. */
  everyMs: number;
  /** Minimum time between the starts of two steps that are caused by wake-ups; default none. */
  restMs?: number;
  /** Called for every failed step. The loop continues, with increasing pauses while failures repeat. */
  onError: (error: unknown) => void;
};

const FAILURE_PAUSE_MS_MAX = 10_000;

/** Repeats a step in the background: after each wake-up, and after a pause. */
export class BackgroundLoop {
  readonly #options: BackgroundLoopOptions;
  #isRunning = false;
  #isWoken = false;
  #wake: () => void = () => {};
  #finished: Promise<void> = Promise.resolve();

  constructor(options: BackgroundLoopOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#finished = this.#finished.then(() => this.#run());
  }

  /** Waits for the current step and starts no other. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    this.wake();
    await this.#finished;
  }

  /** Wakes the loop; a wake-up during a step causes another one. */
  wake(): void {
    this.#isWoken = true;
    this.#wake();
  }

  async #run(): Promise<void> {
    const { step, everyMs, restMs = 0, onError } = this.#options;
    let failures = 0;
    while (this.#isRunning) {
      this.#isWoken = false;
      const beganMs = performance.now();
      try {
        const outcome = await step();
        failures = 0;
        if (outcome === "again") continue;
      } catch (error) {
        failures += 1;
        onError(error);
      }
      if (failures > 0) await this.#sleep(failurePauseMs(failures), "ignoring wake-ups");
      else if (!this.#isWoken) await this.#sleep(everyMs);
      const leftMs = restMs - (performance.now() - beganMs);
      if (leftMs > 0) await this.#sleep(leftMs, "ignoring wake-ups");
    }
  }

  async #sleep(ms: number, ignoresWakeups?: "ignoring wake-ups"): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        if (ignoresWakeups && this.#isRunning) return;
        clearTimeout(timer);
        resolve();
      };
      if (!this.#isRunning) this.#wake();
    });
    this.#wake = () => {};
  }
}

function failurePauseMs(failures: number): number {
  const pauseMs = Math.min(100 * 2 ** Math.min(failures, 10), FAILURE_PAUSE_MS_MAX);
  return pauseMs * (0.5 + Math.random() / 2);
}
