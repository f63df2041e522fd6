import { BackgroundLoop, type Database } from "@millwright/database";
import type { Logger } from "@millwright/telemetry";
import { findDueBenchmarks } from "./store/benchmark-life-store.ts";

export type BenchmarkLoopOptions = {
  readonly database: Database;
  /** Advances one benchmark run. Returns whether anything changed. */
  advance(uid: string): Promise<boolean>;
  readonly pollMs: number;
  readonly log: Logger;
};

/**
 * Minimum pause between two rounds, in milliseconds: every enqueued work item sends a notification, so those that
 * arrive within the pause are handled in one round.
 */
const REST_MS = 50;

/** Advances active benchmark runs on every notification and at every poll. Several replicas may run it concurrently. */
export class BenchmarkLoop {
  readonly #options: BenchmarkLoopOptions;
  readonly #loop: BackgroundLoop;

  constructor(options: BenchmarkLoopOptions) {
    this.#options = options;
    this.#loop = new BackgroundLoop({
      everyMs: options.pollMs,
      restMs: REST_MS,
      step: async () => ((await this.advanceDue()) ? "again" : "idle"),
      onError: (error) => options.log.warn({ error }, "advancing benchmark runs failed; retrying"),
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

  /**
   * Advances every due benchmark run once. A failure of one run is logged and does not stop the others. Returns whether
   * anything changed.
   */
  async advanceDue(): Promise<boolean> {
    let isChanged = false;
    for (const uid of await findDueBenchmarks(this.#options.database)) {
      try {
        isChanged = (await this.#options.advance(uid)) || isChanged;
      } catch (error) {
        this.#options.log.error(
          { error, entity: "benchmark_run", entityUid: uid },
          "advancing a benchmark run failed; retrying",
        );
      }
    }
    return isChanged;
  }
}
