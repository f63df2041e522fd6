import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { AUTHORIZED } from "./api.ts";

export type StreamRequest = {
  readonly url: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly count: number;
};

/** Times are those of the monotonic clock, which all threads and processes share, in milliseconds. */
export type StreamReport =
  | { readonly seq: number; readonly arrivedMs: readonly number[] }
  | { readonly isEnded: true }
  | { readonly failure: string };

/** How long the slowest client may take, in milliseconds. */
const RECEIVED_MS_MAX = 90_000;

export const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/**
 * Clients that follow the event stream of one run from its first event, in a thread. A client that misses, repeats or
 * reorders an event, or loses its connection before the end of the run, makes the next call throw an Error.
 */
export class StreamClients {
  readonly #thread: Worker;
  readonly #received = new Map<number, readonly number[]>();
  #isEnded = false;
  #failure: string | undefined;

  constructor(url: string, path: string, count: number) {
    const workerData: StreamRequest = { url, path, headers: AUTHORIZED, count };
    this.#thread = new Worker(new URL("stream-thread.ts", import.meta.url), { workerData });
    this.#thread.on("message", (report: StreamReport) => {
      if ("failure" in report) this.#failure ??= report.failure;
      else if ("isEnded" in report) this.#isEnded = true;
      else this.#received.set(report.seq, report.arrivedMs);
    });
    this.#thread.on("error", (error) => (this.#failure ??= String(error)));
  }

  /** Waits until all clients have received an event. Returns when each did. */
  async received(seq: number): Promise<readonly number[]> {
    await this.#until(`received event ${seq}`, () => this.#received.has(seq));
    return this.#received.get(seq)!;
  }

  /** Waits until the streams of all clients have ended with the run. */
  ended(): Promise<void> {
    return this.#until("received the end", () => this.#isEnded);
  }

  async close(): Promise<void> {
    await this.#thread.terminate();
  }

  async #until(what: string, isDone: () => boolean): Promise<void> {
    const signal = AbortSignal.timeout(RECEIVED_MS_MAX);
    while (this.#failure === undefined && !isDone())
      await once(this.#thread, "message", { signal }).catch((error: unknown) => {
        throw signal.aborted ? new Error(`Not all clients have ${what} within ${RECEIVED_MS_MAX / 1000} s.`) : error;
      });
    if (this.#failure !== undefined) throw new Error(this.#failure);
  }
}
