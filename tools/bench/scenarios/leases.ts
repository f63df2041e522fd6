import { api, createRun, createWorkerKey } from "../api.ts";
import type { Bench } from "../bench.ts";
import { costPerOperation } from "../cost.ts";
import { serversOf } from "../platform.ts";
import type { Measured } from "../results.ts";
import { round, summarize } from "../samples.ts";
import { ProtocolWorker, type OwnedLease } from "../worker.ts";

const SLOTS = 100;
const ENOUGH = 100_000;
/**
 * Number of workers between two rounds of heartbeats during the setup. Filling the slots of so many workers takes less
 * time than a lease.
 */
const RENEWED_EVERY = 20;

type LeasedWorker = { readonly worker: ProtocolWorker; readonly leases: OwnedLease[] };

/**
 * Measures the cost of renewing leases: workers with a hundred leases each send their heartbeats sequentially. With the
 * default of one heartbeat in ten seconds, 10,000 leases need 1,000 renewals per second.
 */
export async function measureLeases({ platform, meter, isQuick }: Bench): Promise<Measured[]> {
  const { url } = platform;
  const { teams } = await api<{ teams: { uid: string }[] }>(url, "/team");
  await api(url, `/team/${teams[0]!.uid}`, { method: "PATCH", body: JSON.stringify({ concurrency_limit: ENOUGH }) });
  const key = await createWorkerKey(url);
  const workers: LeasedWorker[] = [];
  for (let n = 1; n <= (isQuick ? 10 : 100); n++) {
    workers.push(await fillWorker(url, key, `holder-${n}`));
    if (n % RENEWED_EVERY === 0) await renewAll(workers);
  }
  const { result: latencies, usage } = await meter.measure(serversOf(platform), async () => [
    ...(await renewAll(workers)),
    ...(await renewAll(workers)),
  ]);
  const leaseCount = workers.length * SLOTS;
  for (const { worker, leases } of workers) await worker.complete(leases);
  const perSecond = (latencies.length * SLOTS) / (latencies.reduce((sum, ms) => sum + ms, 0) / 1000);
  return [
    {
      what: `heartbeat of ${SLOTS} leases, ${leaseCount.toLocaleString("en")} live`,
      who: "millwright",
      perSecond: round(perSecond),
      latencyMs: summarize(latencies),
      cost: costPerOperation([usage], latencies.length),
    },
  ];
}

/** Registers a worker and fills all its slots. */
async function fillWorker(url: string, key: string, name: string): Promise<LeasedWorker> {
  const worker = await ProtocolWorker.register(url, key, SLOTS, name);
  const leases: OwnedLease[] = [];
  while (leases.length < SLOTS) {
    const batch = await worker.claim(SLOTS - leases.length, 1);
    if (batch.length === 0) await Promise.all(Array.from({ length: 20 }, () => createRun(url)));
    leases.push(...batch);
  }
  return { worker, leases };
}

/** Sends one heartbeat per worker. Returns the duration of each. */
async function renewAll(workers: readonly LeasedWorker[]): Promise<number[]> {
  const latencies: number[] = [];
  for (const { worker, leases } of workers) {
    const beganMs = performance.now();
    await worker.heartbeat(leases);
    latencies.push(performance.now() - beganMs);
  }
  return latencies;
}
