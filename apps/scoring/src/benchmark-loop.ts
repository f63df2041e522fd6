import { BackgroundLoop } from "@millwright/database";
import type { Logger } from "@millwright/telemetry";

export type BenchmarkLoopOptions = {
  /** Benchmark runs that may have something to do. */
  due(): Promise<readonly string[]>;
  /** Returns whether anything changed. */
  advance(uid: string): Promise<boolean>;
  readonly pollMs: number;
  readonly log: Logger;
};

/** Notifications come with every item of work: those of so much time are handled together. */
const REST_MS = 50;

/** Advances active benchmark runs: when notified, and at every poll. Any number of replicas may run. */
export class BenchmarkLoop {
  readonly #options: BenchmarkLoopOptions;
  readonly #loop: BackgroundLoop;

  constructor(options: BenchmarkLoopOptions) {
    this.#options = options;
    this.#loop = new BackgroundLoop({
      everyMs: options.pollMs,
      restMs: REST_MS,
      step: async () => ((await this.advanceDue()) ? "again" : "idle"),
      onError: (error) => options.log.warn({ error }, "benchmark runs were not advanced; it is tried again"),
    });
  }

  start(): void {
    this.#loop.start();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  wake(): void {
    this.#loop.wake();
  }

  /** Advances every benchmark run that is due once. One that fails does not hold up the others. Returns whether anything changed. */
  async advanceDue(): Promise<boolean> {
    let isChanged = false;
    for (const uid of await this.#options.due()) {
      try {
        isChanged = (await this.#options.advance(uid)) || isChanged;
      } catch (error) {
        this.#options.log.error(
          { error, entity: "benchmark_run", entityUid: uid },
          "a benchmark run was not advanced; it is tried again",
        );
      }
    }
    return isChanged;
  }
}
