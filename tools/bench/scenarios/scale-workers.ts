import { setTimeout as pause } from "node:timers/promises";
import { createRun, createWorkerKey } from "../api.ts";
import type { Bench } from "../bench.ts";
import { costPerOperation } from "../cost.ts";
import { serversOf } from "../platform.ts";
import type { Measured } from "../results.ts";
import { summarize } from "../samples.ts";
import { ProtocolWorker } from "../worker.ts";

const WORKERS = [10, 100, 1_000];
const QUICK_WORKERS = [10, 100];
const RUNS = 50;
/** As long as a poll for work, and two heartbeats. */
const IDLE_MS = 20_000;
const HEARTBEAT_MS = 10_000;
const POLL_MS = 20_000;
const CONNECTED_AT_A_TIME = 10;

/**
 * Measures connected workers: each has an open subscription and a poll for work, and sends heartbeats. One operation of
 * the idle workers is a second, so that its cost is the processor time per second. Fails unless each run is claimed
 * once.
 */
export async function measureScaleOfWorkers(bench: Bench): Promise<Measured[]> {
  const { url } = bench.platform;
  const fleet = new Fleet(url, await createWorkerKey(url));
  const rows: Measured[] = [];
  try {
    for (const count of bench.isQuick ? QUICK_WORKERS : WORKERS) {
      await fleet.growTo(count);
      rows.push(...(await measureFleet(bench, fleet, count)));
    }
  } finally {
    await fleet.disconnect();
  }
  return rows;
}

async function measureFleet({ platform, meter }: Bench, fleet: Fleet, count: number): Promise<Measured[]> {
  const workers = `${count.toLocaleString("en")} connected workers`;
  const beganMs = performance.now();
  const { usage } = await meter.measure(serversOf(platform), () => pause(IDLE_MS));
  const seconds = (performance.now() - beganMs) / 1000;
  const latencies: number[] = [];
  for (let n = 0; n < RUNS; n++) latencies.push(await fleet.claimOne());
  return [
    { what: `a second of ${workers}`, who: "millwright", cost: costPerOperation([usage], seconds) },
    { what: `create to claimed, ${workers}`, who: "millwright", latencyMs: summarize(latencies) },
  ];
}

class Fleet {
  readonly #url: string;
  readonly #key: string;
  readonly #ending = new AbortController();
  readonly #loops: Promise<void>[] = [];
  readonly #claimed = new Map<string, number>();
  #workerCount = 0;
  #failure: unknown;
  #notify = (): void => {};

  constructor(url: string, key: string) {
    this.#url = url;
    this.#key = key;
  }

  async growTo(count: number): Promise<void> {
    const connect = async (): Promise<void> => {
      while (this.#workerCount < count) await this.#connect(`scale-${++this.#workerCount}`);
    };
    await Promise.all(Array.from({ length: CONNECTED_AT_A_TIME }, connect));
  }

  /** Creates a run and waits until a worker has claimed it. Returns how long this took. */
  async claimOne(): Promise<number> {
    const beganMs = performance.now();
    const runUid = await createRun(this.#url);
    while (!this.#claimed.has(runUid)) {
      if (this.#failure !== undefined) throw this.#failure;
      await new Promise<void>((resolve) => (this.#notify = resolve));
    }
    return this.#claimed.get(runUid)! - beganMs;
  }

  async disconnect(): Promise<void> {
    this.#ending.abort();
    await Promise.all(this.#loops);
  }

  async #connect(name: string): Promise<void> {
    const worker = await ProtocolWorker.register(this.#url, this.#key, 1, name);
    const { signal } = this.#ending;
    const loops = [worker.subscribe(signal), this.#work(worker, signal), beat(worker, signal)];
    this.#loops.push(
      ...loops.map((loop) =>
        loop.catch((error: unknown) => {
          if (!signal.aborted) this.#failure ??= error;
          this.#notify();
        }),
      ),
    );
  }

  async #work(worker: ProtocolWorker, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const leases = await worker.claim(1, POLL_MS, signal);
      for (const { runUid } of leases) {
        if (this.#claimed.has(runUid)) throw new Error(`Run ${runUid} was claimed twice.`);
        this.#claimed.set(runUid, performance.now());
      }
      this.#notify();
      if (leases.length > 0) await worker.complete(leases);
    }
  }
}

/** Sends heartbeats, the first after a part of the interval, so that those of many workers are spread. */
async function beat(worker: ProtocolWorker, signal: AbortSignal): Promise<void> {
  for (let waitMs = Math.random() * HEARTBEAT_MS; ; waitMs = HEARTBEAT_MS) {
    await pause(waitMs, undefined, { signal });
    await worker.heartbeat([]);
  }
}
