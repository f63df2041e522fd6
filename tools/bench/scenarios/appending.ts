import { createRun, createWorkerKey } from "../api.ts";
import type { Bench } from "../bench.ts";
import type { Row } from "../results.ts";
import { round, summarize } from "../samples.ts";
import { ProtocolWorker, type Taken } from "../worker.ts";

const BATCH = 50;
const RUNS = 4;

/** Run events through the workers' door: one at a time, and in batches of several runs at once as workers gather them. */
export async function measureAppending({ platform, isQuick }: Bench): Promise<Row[]> {
  const worker = await ProtocolWorker.register(platform.url, await createWorkerKey(platform.url), RUNS);
  await Promise.all(Array.from({ length: RUNS }, () => createRun(platform.url)));
  const taken: Taken[] = [];
  while (taken.length < RUNS) taken.push(...(await worker.take(RUNS - taken.length, 5_000)));
  const seconds = isQuick ? 1 : 4;
  const single = await appendFor(worker, taken[0]!, 1, seconds);
  const batched = await Promise.all(taken.slice(1).map((one) => appendFor(worker, one, BATCH, seconds)));
  await worker.complete(taken);
  return [
    { what: "append run events, one at a time", who: "millwright", perSecond: round(single.length / seconds), latencyMs: summarize(single) },
    {
      what: `append run events, ${BATCH} at a time, ${RUNS - 1} runs`, who: "millwright",
      perSecond: round((batched.flat().length * BATCH) / seconds), latencyMs: summarize(batched.flat()),
    },
  ];
}

/** Appends one batch after the other; answers how long each took, after a warm-up. */
async function appendFor(worker: ProtocolWorker, run: Taken, size: number, seconds: number): Promise<number[]> {
  const latencies: number[] = [];
  let next = 1;
  const append = async (): Promise<number> => {
    const beganMs = performance.now();
    await worker.append(run, next, size);
    next += size;
    return performance.now() - beganMs;
  };
  for (let n = 0; n < 20; n++) await append();
  const untilMs = performance.now() + seconds * 1000;
  while (performance.now() < untilMs) latencies.push(await append());
  return latencies;
}
