import { createRun, createWorkerKey } from "../api.ts";
import { EventFloor } from "../baseline/events.ts";
import type { Bench } from "../bench.ts";
import { costPerOperation, type CostMeter, type Usage } from "../cost.ts";
import { serversOf } from "../platform.ts";
import type { Cost, Measured } from "../results.ts";
import { round, summarize } from "../samples.ts";
import { ProtocolWorker, type OwnedLease } from "../worker.ts";

const BATCH = 50;
const RUNS = 4;
/** Calls per run before the measurement. */
const WARM_UP = 20;
/** Seconds per measurement. With a longer time, a run would exceed its quota of events. */
const SECONDS = 2;

/**
 * Measures appending run events through the worker API: one at a time, and in concurrent batches of several runs, as
 * workers send them. The reference implementation is this process with `pg`: the same rows, in one transaction per
 * batch, without HTTP and notifications.
 */
export async function measureAppending({ platform, baseline, meter, isQuick }: Bench): Promise<Measured[]> {
  const worker = await ProtocolWorker.register(platform.url, await createWorkerKey(platform.url), RUNS);
  await Promise.all(Array.from({ length: RUNS }, () => createRun(platform.url)));
  const leases: OwnedLease[] = [];
  while (leases.length < RUNS) leases.push(...(await worker.claim(RUNS - leases.length, 5_000)));
  const seconds = isQuick ? 1 : SECONDS;
  const appends = leases.map(
    (run): Append =>
      (from, count) =>
        worker.append(run, from, count),
  );
  const ours = await appendAll(appends, seconds, (act) => meter.measure(serversOf(platform), act));
  await worker.complete(leases);
  const theirs = await measureFloor(baseline.databaseUrl, seconds, meter);
  return [
    ...compared("append run events, one at a time", ours.single, theirs.single),
    ...compared(`append run events, ${BATCH} at a time, ${RUNS - 1} runs`, ours.batched, theirs.batched),
  ];
}

async function measureFloor(
  databaseUrl: string,
  seconds: number,
  meter: CostMeter,
): Promise<{ single: Figures; batched: Figures }> {
  const floor = await EventFloor.open(databaseUrl);
  try {
    const appends = await Promise.all(Array.from({ length: RUNS }, () => floor.run()));
    return await appendAll(appends, seconds, (act) => meter.measure([], act));
  } finally {
    await floor.close();
  }
}

type Append = (from: number, count: number) => Promise<void>;
type Figures = { readonly perSecond: number; readonly latencies: readonly number[]; readonly cost: Cost };
type Metered = <T>(act: () => Promise<T>) => Promise<{ readonly result: T; readonly usage: Usage }>;

/** Appends single events to the first run, then concurrently batches to the other runs. The costs are per event. */
async function appendAll(
  [first, ...others]: readonly Append[],
  seconds: number,
  metered: Metered,
): Promise<{ single: Figures; batched: Figures }> {
  const measure = async (appends: readonly Append[], size: number): Promise<Figures> => {
    for (const append of appends) for (let n = 0; n < WARM_UP; n++) await append(1 + n * size, size);
    const { result, usage } = await metered(() =>
      Promise.all(appends.map((append) => appendFor(append, size, seconds))),
    );
    const latencies = result.flat();
    const events = latencies.length * size;
    return { perSecond: events / seconds, latencies, cost: costPerOperation([usage], events) };
  };
  return { single: await measure([first!], 1), batched: await measure(others, BATCH) };
}

const compared = (what: string, ours: Figures, floor: Figures): Measured[] => [
  { what, who: "millwright", perSecond: round(ours.perSecond), latencyMs: summarize(ours.latencies), cost: ours.cost },
  {
    what,
    who: "floor",
    perSecond: round(floor.perSecond),
    latencyMs: summarize(floor.latencies),
    ours: round(ours.perSecond / floor.perSecond),
    cost: floor.cost,
  },
];

/** Appends batches sequentially, after the warm-up. Returns the duration of each. */
async function appendFor(appendOne: Append, size: number, seconds: number): Promise<number[]> {
  const latencies: number[] = [];
  const untilMs = performance.now() + seconds * 1000;
  for (let next = 1 + WARM_UP * size; performance.now() < untilMs; next += size) {
    const beganMs = performance.now();
    await appendOne(next, size);
    latencies.push(performance.now() - beganMs);
  }
  return latencies;
}
