import { api, createRun, createWorkerKey } from "../api.ts";
import type { Bench } from "../bench.ts";
import type { Measured } from "../results.ts";
import { round, summarize } from "../samples.ts";
import { ProtocolWorker, type Taken } from "../worker.ts";

const SLOTS = 100;
const ENOUGH = 100_000;
/**
 * Number of workers between two rounds of heartbeats during the setup. Filling the slots of so many workers takes less
 * time than a lease.
 */
const KEPT_ALIVE_EVERY = 20;

type Holder = { readonly worker: ProtocolWorker; readonly held: Taken[] };

/**
 * Measures the cost of renewing leases: workers with a hundred leases each send their heartbeats sequentially. With the
 * default of one heartbeat in ten seconds, 10,000 leases need 1,000 renewals per second.
 */
export async function measureLeases({ platform: { url }, isQuick }: Bench): Promise<Measured[]> {
  const { teams } = await api<{ teams: { uid: string }[] }>(url, "/team");
  await api(url, `/team/${teams[0]!.uid}`, { method: "PATCH", body: JSON.stringify({ concurrency_limit: ENOUGH }) });
  const key = await createWorkerKey(url);
  const holders: Holder[] = [];
  for (let n = 1; n <= (isQuick ? 10 : 100); n++) {
    holders.push(await holder(url, key, `holder-${n}`));
    if (n % KEPT_ALIVE_EVERY === 0) await beatAll(holders);
  }
  const latencies = [...(await beatAll(holders)), ...(await beatAll(holders))];
  const leases = holders.length * SLOTS;
  for (const { worker, held } of holders) await worker.complete(held);
  const perSecond = (latencies.length * SLOTS) / (latencies.reduce((sum, ms) => sum + ms, 0) / 1000);
  return [
    {
      what: `heartbeat of ${SLOTS} leases, ${leases.toLocaleString("en")} live`,
      who: "millwright",
      perSecond: round(perSecond),
      latencyMs: summarize(latencies),
    },
  ];
}

/** Registers a worker and fills all its slots. */
async function holder(url: string, key: string, name: string): Promise<Holder> {
  const worker = await ProtocolWorker.register(url, key, SLOTS, name);
  const held: Taken[] = [];
  while (held.length < SLOTS) {
    const taken = await worker.take(SLOTS - held.length, 1);
    if (taken.length === 0) await Promise.all(Array.from({ length: 20 }, () => createRun(url)));
    held.push(...taken);
  }
  return { worker, held };
}

/** Sends one heartbeat per worker. Returns the duration of each. */
async function beatAll(holders: readonly Holder[]): Promise<number[]> {
  const latencies: number[] = [];
  for (const { worker, held } of holders) {
    const beganMs = performance.now();
    await worker.heartbeat(held);
    latencies.push(performance.now() - beganMs);
  }
  return latencies;
}
