import { setTimeout as pause } from "node:timers/promises";
import { Logger, makeWorkerUtils, run as runGraphile, type TaskList } from "graphile-worker";
import { createRun, createWorkerKey } from "../api.ts";
import type { Bench } from "../bench.ts";
import type { Measured } from "../results.ts";
import { round, summarize } from "../samples.ts";
import { ProtocolWorker } from "../worker.ts";

const LATENCY = "create to claimed, idle worker";
const FINISHED = "no-op runs finished";
const SLOTS = 16;
const WAIT_MS = 5_000;
/** Both sides are measured warm: the first runs after a start are compiled on the way. */
const WARM_UP = 60;
const SILENT = new Logger(() => () => {});

/** How soon work starts when a worker waits for it, and how much of it gets through. */
export async function measureWork(bench: Bench): Promise<Measured[]> {
  const [runs, backlog] = bench.isQuick ? [20, 48] : [100, 192];
  const ours = await measureOurs(bench, runs, backlog);
  const theirs = await measureGraphile(bench, runs, backlog);
  return [
    { what: LATENCY, who: "millwright", latencyMs: summarize(ours.latencies) },
    { what: LATENCY, who: "graphile-worker", latencyMs: summarize(theirs.latencies), ours: round(summarize(theirs.latencies).p50 / summarize(ours.latencies).p50) },
    { what: FINISHED, who: "millwright", perSecond: round(ours.finished) },
    { what: FINISHED, who: "graphile-worker", perSecond: round(theirs.finished), ours: round(ours.finished / theirs.finished) },
  ];
}

type Figures = { readonly latencies: number[]; readonly finished: number };

/** From before the request until the worker holds the claimed run: two HTTP calls of the worker and two commits are within. */
async function measureOurs({ platform }: Bench, runs: number, backlog: number): Promise<Figures> {
  const worker = await ProtocolWorker.register(platform.url, await createWorkerKey(platform.url), SLOTS);
  const latencies: number[] = [];
  for (let n = 0; n < runs + WARM_UP; n++) {
    const taking = worker.take(1, WAIT_MS);
    await pause(5); // the worker waits before the run is there
    const beganMs = performance.now();
    const [, taken] = await Promise.all([createRun(platform.url), taking.then((all) => ({ all, ms: performance.now() - beganMs }))]);
    if (taken.all.length !== 1) throw new Error("A run was not offered to the worker that waited for it.");
    if (n >= WARM_UP) latencies.push(taken.ms);
    await worker.complete(taken.all);
  }
  for (let n = 0; n < backlog; n += SLOTS) await Promise.all(Array.from({ length: Math.min(SLOTS, backlog - n) }, () => createRun(platform.url)));
  const beganMs = performance.now();
  for (let done = 0; done < backlog; ) {
    const taken = await worker.take(SLOTS, WAIT_MS);
    if (taken.length === 0) throw new Error(`Only ${done} of ${backlog} runs were offered.`);
    await worker.complete(taken);
    done += taken.length;
  }
  return { latencies, finished: backlog / ((performance.now() - beganMs) / 1000) };
}

/** From before addJob until the task's function is called. */
async function measureGraphile({ baseline }: Bench, jobs: number, backlog: number): Promise<Figures> {
  let started: () => void = () => {};
  let left = 0;
  const taskList: TaskList = {
    bench: () => started(),
    noop: () => void (--left === 0 && started()),
  };
  const options = { connectionString: baseline.databaseUrl, noHandleSignals: true, logger: SILENT };
  const utils = await makeWorkerUtils(options);
  const latencies: number[] = [];
  try {
    const idle = await runGraphile({ ...options, concurrency: 1, taskList });
    for (let n = 0; n < jobs + WARM_UP; n++) {
      const beganMs = performance.now();
      const seen = new Promise<number>((resolve) => (started = () => resolve(performance.now() - beganMs)));
      await utils.addJob("bench", { n });
      const ms = await seen;
      if (n >= WARM_UP) latencies.push(ms);
      await pause(5);
    }
    await idle.stop();
    left = backlog;
    await utils.addJobs(Array.from({ length: backlog }, (_, n) => ({ identifier: "noop", payload: { n } })));
    const beganMs = performance.now();
    const all = new Promise<void>((resolve) => (started = resolve));
    const busy = await runGraphile({ ...options, concurrency: SLOTS, taskList });
    await all;
    const finished = backlog / ((performance.now() - beganMs) / 1000);
    await busy.stop();
    return { latencies, finished };
  } finally {
    await utils.release();
  }
}
