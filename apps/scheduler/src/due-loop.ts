import { BackgroundLoop } from "@millwright/database";

export type DueLoopOptions = {
  /** Does a piece of what is due; answers how much that was. */
  take(): Promise<number>;
  /** How long until the next is due; undefined: nothing is planned. */
  waitMs(): Promise<number | undefined>;
  onError(error: unknown): void;
};

/** How long what another replica has changed may stay unnoticed. */
const POLL_MS = 1_000;
/** How soon what is due and at another's hands is looked at again. */
const BLOCKED_MS = 100;

/** Does what is due when it comes due: wakes by itself for the next, when it is rung, and every second. */
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
    if ((await this.#options.take()) > 0) return "again";
    const waitMs = await this.#options.waitMs();
    clearTimeout(this.#alarm);
    if (waitMs !== undefined && waitMs < POLL_MS)
      this.#alarm = setTimeout(() => this.#loop.wake(), waitMs > 0 ? waitMs + 1 : BLOCKED_MS);
    return "idle";
  }
}
