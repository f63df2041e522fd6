import { setTimeout as pause } from "node:timers/promises";
import { Logger, makeWorkerUtils, run as runGraphile, type TaskList } from "graphile-worker";
import { PgBoss } from "pg-boss";
import { createRun, createWorkerKey } from "../api.ts";
import type { Bench } from "../bench.ts";
import { costPerOperation } from "../cost.ts";
import { serversOf } from "../platform.ts";
import type { Cost, Measured } from "../results.ts";
import { round, summarize } from "../samples.ts";
import { ProtocolWorker, type OwnedLease } from "../worker.ts";

const LATENCY = "create to claimed, idle worker";
const FINISHED = "no-op runs finished";
const PACED = "create to claimed, 50 runs/s";
const SLOTS = 16;
const PACE_PER_SECOND = 50;
const WAIT_MS = 5_000;
/** Warm-up runs of both implementations: the first runs after a start include JIT compilation. */
const WARM_UP = 60;
const SILENT = new Logger(() => () => {});

/** Measures how soon work starts on an idle worker, and how many no-op runs finish per second. */
export async function measureWork(bench: Bench): Promise<Measured[]> {
  const [runs, backlog] = bench.isQuick ? [20, 48] : [100, 192];
  const ours = await measureOurs(bench, runs, backlog);
  const theirs = await measureGraphile(bench, runs, backlog);
  const boss = await measurePgBoss(bench, backlog);
  const paced = await measurePaced(bench, bench.isQuick ? 3 : 10);
  return [
    { what: LATENCY, who: "millwright", latencyMs: summarize(ours.latencies) },
    {
      what: LATENCY,
      who: "graphile-worker",
      latencyMs: summarize(theirs.latencies),
      ours: round(summarize(theirs.latencies).p50 / summarize(ours.latencies).p50),
    },
    { what: FINISHED, who: "millwright", perSecond: round(ours.finished), cost: ours.cost },
    {
      what: FINISHED,
      who: "graphile-worker",
      perSecond: round(theirs.finished),
      ours: round(ours.finished / theirs.finished),
    },
    { what: FINISHED, who: "pg-boss", perSecond: round(boss.workers), ours: round(ours.finished / boss.workers) },
    {
      what: FINISHED,
      who: "pg-boss, fetched in a loop",
      perSecond: round(boss.loops),
      ours: round(ours.finished / boss.loops),
    },
    { what: PACED, who: "millwright", perSecond: PACE_PER_SECOND, latencyMs: summarize(paced) },
  ];
}

type Figures = { readonly latencies: number[]; readonly finished: number };

/**
 * Measures from before the request until the worker has claimed the run, which includes two HTTP calls of the worker
 * and two commits; then how fast a backlog is finished, and what that costs.
 */
async function measureOurs(
  { platform, meter }: Bench,
  runs: number,
  backlog: number,
): Promise<Figures & { readonly cost: Cost }> {
  const worker = await ProtocolWorker.register(platform.url, await createWorkerKey(platform.url), SLOTS);
  const latencies: number[] = [];
  for (let n = 0; n < runs + WARM_UP; n++) {
    const claiming = worker.claim(1, WAIT_MS);
    await pause(5); // the worker is waiting before the run is created
    const beganMs = performance.now();
    const [, { leases, ms }] = await Promise.all([
      createRun(platform.url),
      claiming.then((claimed) => ({ leases: claimed, ms: performance.now() - beganMs })),
    ]);
    if (leases.length !== 1) throw new Error("A run was not offered to the worker that waited for it.");
    if (n >= WARM_UP) latencies.push(ms);
    await worker.complete(leases);
  }
  for (let n = 0; n < backlog; n += SLOTS)
    await Promise.all(Array.from({ length: Math.min(SLOTS, backlog - n) }, () => createRun(platform.url)));
  const { result: seconds, usage } = await meter.measure(serversOf(platform), () => finishAll(worker, backlog));
  return { latencies, finished: backlog / seconds, cost: costPerOperation([usage], backlog) };
}

/** Claims and completes runs that are queued. Returns how long this took, in seconds. */
async function finishAll(worker: ProtocolWorker, backlog: number): Promise<number> {
  const beganMs = performance.now();
  for (let done = 0; done < backlog;) {
    const leases = await worker.claim(SLOTS, WAIT_MS);
    if (leases.length === 0) throw new Error(`Only ${done} of ${backlog} runs were offered.`);
    await worker.complete(leases);
    done += leases.length;
  }
  return (performance.now() - beganMs) / 1000;
}

/** Measures from before addJob until the task's function is called. */
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

/**
 * Returns jobs per second of pg-boss's own workers, and of a loop. There are as many workers as slots; each processes
 * one job at a time and pauses for at least half a second after each job. The loop fetches and completes one job at a
 * time, with the same concurrency.
 */
async function measurePgBoss({ baseline }: Bench, backlog: number): Promise<{ workers: number; loops: number }> {
  const boss = new PgBoss({ connectionString: baseline.databaseUrl, max: SLOTS, supervise: false, schedule: false });
  await boss.start();
  const put = (name: string, count: number) =>
    boss.insert(
      name,
      Array.from({ length: count }, (_, n) => ({ data: { n } })),
    );
  const rate = async (work: () => Promise<unknown>): Promise<number> => {
    const beganMs = performance.now();
    await work();
    return backlog / ((performance.now() - beganMs) / 1000);
  };
  try {
    for (const name of ["worked", "looped"]) await boss.createQueue(name);
    await put("worked", backlog);
    const workers = await rate(async () => {
      let left = backlog;
      const all = Promise.withResolvers<void>();
      const finishJob = (): Promise<void> => Promise.resolve(--left === 0 ? all.resolve() : undefined);
      await Promise.all(
        Array.from({ length: SLOTS }, () =>
          boss.work("worked", { batchSize: 1, pollingIntervalSeconds: 0.5 }, finishJob),
        ),
      );
      await all.promise;
    });
    await boss.offWork("worked");
    await put("looped", WARM_UP + backlog);
    const finish = async (share: number): Promise<void> => {
      for (let n = 0; n < share; n++) {
        const [job] = await boss.fetch("looped");
        if (!job) throw new Error("pg-boss has lost a job.");
        await boss.complete("looped", job.id);
      }
    };
    await finish(WARM_UP);
    return {
      workers,
      loops: await rate(() => Promise.all(Array.from({ length: SLOTS }, () => finish(backlog / SLOTS)))),
    };
  } finally {
    await boss.stop({ graceful: false });
  }
}

/**
 * Creates runs at a fixed rate, independent of their progress, for a worker that claims and completes them as they
 * arrive. Returns the time from creation to claim of each.
 */
async function measurePaced({ platform }: Bench, seconds: number): Promise<number[]> {
  const worker = await ProtocolWorker.register(platform.url, await createWorkerKey(platform.url), SLOTS);
  const [began, claimed] = [new Map<string, number>(), new Map<string, number>()];
  const ending: Promise<void>[] = [];
  let busy = 0;
  const end = async (leases: readonly OwnedLease[]): Promise<void> => {
    busy += leases.length;
    await worker.complete(leases);
    busy -= leases.length;
  };
  const count = PACE_PER_SECOND * seconds;
  const work = async (): Promise<void> => {
    while (claimed.size < count) {
      const leases = await worker.claim(Math.max(1, SLOTS - busy), WAIT_MS);
      for (const { runUid } of leases) claimed.set(runUid, performance.now());
      if (leases.length === 0) throw new Error(`Only ${claimed.size} of ${count} runs were offered.`);
      ending.push(end(leases));
    }
  };
  const create = async (n: number): Promise<void> => {
    await pause((n * 1000) / PACE_PER_SECOND);
    const beganMs = performance.now();
    began.set(await createRun(platform.url), beganMs);
  };
  await Promise.all([work(), ...Array.from({ length: count }, (_, n) => create(n))]);
  await Promise.all(ending);
  return [...claimed].map(([runUid, ms]) => ms - (began.get(runUid) ?? Number.NaN));
}
