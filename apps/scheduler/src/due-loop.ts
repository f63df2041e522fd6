import { BackgroundLoop } from "@millwright/database";

export type DueLoopOptions = {
  /** Processes a batch of due items; returns its size. */
  processDue(): Promise<number>;
  /** Returns how long until the next item is due; undefined if none is planned. */
  waitMs(): Promise<number | undefined>;
  onError(error: unknown): void;
};

/** The longest time until a change by another replica is noticed. */
const POLL_MS = 1_000;
/** How soon due items that another replica has locked are checked again. */
const BLOCKED_MS = 100;

/** Processes items when they come due: wakes up for the next due time, when `wake` is called, and every second. */
export class DueLoop {
  readonly #options: DueLoopOptions;
  readonly #loop: BackgroundLoop;
  #alarm: NodeJS.Timeout | undefined;

  constructor(options: DueLoopOptions) {
    this.#options = options;
    this.#loop = new BackgroundLoop({
      everyMs: POLL_MS,
      step: () => this.#step(),
      onError: (error) => options.onError(error),
    });
  }

  start(): void {
    this.#loop.start();
  }

  wake(): void {
    this.#loop.wake();
  }

  async stop(): Promise<void> {
    clearTimeout(this.#alarm);
    await this.#loop.stop();
    clearTimeout(this.#alarm);
  }

  async #step(): Promise<"again" | "idle"> {
    if ((await this.#options.processDue()) > 0) return "again";
    const waitMs = await this.#options.waitMs();
    clearTimeout(this.#alarm);
    if (waitMs !== undefined && waitMs < POLL_MS)
      this.#alarm = setTimeout(() => this.#loop.wake(), waitMs > 0 ? waitMs + 1 : BLOCKED_MS);
    return "idle";
  }
}
