import { createRun, createWorkerKey } from "../api.ts";
import { EventFloor } from "../baseline/events.ts";
import type { Bench } from "../bench.ts";
import type { Measured } from "../results.ts";
import { round, summarize } from "../samples.ts";
import { ProtocolWorker, type OwnedLease } from "../worker.ts";

const BATCH = 50;
const RUNS = 4;
/** Seconds per measurement. With a longer time, a run would exceed its quota of events. */
const SECONDS = 2;

/**
 * Measures appending run events through the worker API: one at a time, and in concurrent batches of several runs, as
 * workers send them. The reference implementation is this process with `pg`: the same rows, in one transaction per
 * batch, without HTTP and notifications.
 */
export async function measureAppending({ platform, baseline, isQuick }: Bench): Promise<Measured[]> {
  const worker = await ProtocolWorker.register(platform.url, await createWorkerKey(platform.url), RUNS);
  await Promise.all(Array.from({ length: RUNS }, () => createRun(platform.url)));
  const leases: OwnedLease[] = [];
  while (leases.length < RUNS) leases.push(...(await worker.claim(RUNS - leases.length, 5_000)));
  const seconds = isQuick ? 1 : SECONDS;
  const ours = await appendAll(
    leases.map(
      (run): Append =>
        (from, count) =>
          worker.append(run, from, count),
    ),
    seconds,
  );
  await worker.complete(leases);
  const theirs = await measureFloor(baseline.databaseUrl, seconds);
  return [
    ...compared("append run events, one at a time", ours.single, theirs.single),
    ...compared(`append run events, ${BATCH} at a time, ${RUNS - 1} runs`, ours.batched, theirs.batched),
  ];
}

async function measureFloor(databaseUrl: string, seconds: number): Promise<{ single: Figures; batched: Figures }> {
  const floor = await EventFloor.open(databaseUrl);
  try {
    return await appendAll(await Promise.all(Array.from({ length: RUNS }, () => floor.run())), seconds);
  } finally {
    await floor.close();
  }
}

type Append = (from: number, count: number) => Promise<void>;
type Figures = { readonly perSecond: number; readonly latencies: readonly number[] };

/** Appends single events to the first run, then concurrently batches to the other runs. */
async function appendAll(
  [first, ...others]: readonly Append[],
  seconds: number,
): Promise<{ single: Figures; batched: Figures }> {
  const single = await appendFor(first!, 1, seconds);
  const batched = (await Promise.all(others.map((append) => appendFor(append, BATCH, seconds)))).flat();
  return {
    single: { perSecond: single.length / seconds, latencies: single },
    batched: { perSecond: (batched.length * BATCH) / seconds, latencies: batched },
  };
}

const compared = (what: string, ours: Figures, floor: Figures): Measured[] => [
  { what, who: "millwright", perSecond: round(ours.perSecond), latencyMs: summarize(ours.latencies) },
  {
    what,
    who: "floor",
    perSecond: round(floor.perSecond),
    latencyMs: summarize(floor.latencies),
    ours: round(ours.perSecond / floor.perSecond),
  },
];

/** Appends batches sequentially. Returns the duration of each, without a warm-up. */
async function appendFor(appendOne: Append, size: number, seconds: number): Promise<number[]> {
  const latencies: number[] = [];
  let next = 1;
  const append = async (): Promise<number> => {
    const beganMs = performance.now();
    await appendOne(next, size);
    next += size;
    return performance.now() - beganMs;
  };
  for (let n = 0; n < 20; n++) await append();
  const untilMs = performance.now() + seconds * 1000;
  while (performance.now() < untilMs) latencies.push(await append());
  return latencies;
}
