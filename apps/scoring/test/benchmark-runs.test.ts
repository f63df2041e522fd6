import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { scoring } from "@millwright/contracts";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { manifestHash, type Manifest } from "../src/domain/manifest.ts";
import { queuedRuns, settle, trialsOf } from "./benchmark-world.ts";
import { OTHER_TEAM, OWNER, startWorld, STRANGER, VIEWER, type World } from "./setup.ts";

let world: World;
let factoryUid: string;
let suiteUid: string;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());
beforeEach(async () => {
  await world.reset();
  factoryUid = world.aFactory();
  const agentUid = world.anAgent(factoryUid, "builder");
  const tasks = ["a", "b"].map((title) => ({
    title,
    prompt: title,
    successCriteria: title,
    rule: { checks: [{ kind: "state", in: ["SUCCEEDED"] }] },
  }));
  const suite = {
    factoryUid,
    agentUid,
    factoryAgentType: "builder",
    name: "Core",
    tasks,
    configurations: [{ role: "baseline" }, { role: "candidate", model: "judge-small" }],
  };
  suiteUid = (await world.benchmarks.createSuite({ suite }, call(OWNER))).suite!.uid;
});

const refused = (reason: string) => expect.objectContaining({ reason });
const launch = async (): Promise<string> =>
  (await world.benchmarks.launchBenchmark({ factoryUid, suiteUid, repetitionCount: 1, parallelism: 3 }, call(OWNER)))
    .uid;
const get = async (runUid: string, include: string[] = [], caller = OWNER): Promise<scoring.BenchmarkRun> =>
  (await world.benchmarks.getBenchmarkRun({ factoryUid, suiteUid, runUid, include }, call(caller))).run!;
const list = (request: object = {}, caller = OWNER) =>
  world.benchmarks.listBenchmarkRuns({ factoryUid, suiteUid, ...request }, call(caller));
const cancel = async (runUid: string, caller = OWNER): Promise<scoring.BenchmarkRun> =>
  (await world.benchmarks.cancelBenchmarkRun({ factoryUid, suiteUid, runUid }, call(caller))).run!;

/** Ends every queued run of a trial until there are none. */
async function finishTrials(): Promise<void> {
  await settle(world.service);
  for (let runs = queuedRuns(world); runs.length > 0; runs = queuedRuns(world)) {
    for (const { uid } of runs) world.orchestrator.finish(uid);
    await settle(world.service);
  }
}

describe("a benchmark run", () => {
  test("has stats that are null before the first trial and real zeros after", async () => {
    const uid = await launch();
    const before = (await get(uid)).progress!;
    expect(before).toMatchObject({
      elapsed_s: null,
      trial_count: null,
      task_count: null,
      scorer_count: null,
      total_credits: null,
      cost_usd: null,
      configuration_stats: null,
    });
    expect(before["trial_progress"]).toEqual({
      total: 4,
      pending: 4,
      running: 0,
      succeeded: 0,
      failed: 0,
      cancelled: 0,
      completed: 0,
    });

    await settle(world.service);
    expect((await get(uid)).state).toBe("running");
    expect((await get(uid)).progress).toMatchObject({
      trial_count: 4,
      task_count: 2,
      scorer_count: 1,
      total_credits: "0",
      cost_usd: 0,
      trial_progress: { running: 3, pending: 1 },
    });

    await finishTrials();
    const run = await get(uid);
    expect(run).toMatchObject({
      state: "completed",
      progress: { trial_progress: { completed: 4, succeeded: 4 }, score_progress: { expected: 4, received: 4 } },
    });
    expect(run.progress!["configuration_stats"]).toMatchObject([
      { role: "baseline", trial_count: 2, pass_count: 2, fail_count: 0, pass_rate: 1 },
      { role: "candidate", pass_rate: 1 },
    ]);
    expect(run.completedAt).toBeDefined();
  });

  test("shows manifest and results only when they are included", async () => {
    const uid = await launch();
    const plain = await get(uid);
    expect([plain.manifest, plain.results]).toEqual([undefined, undefined]);
    const { manifest, manifestHash: hash, results } = await get(uid, ["launch_settings", "results"]);
    expect(manifestHash((manifest as unknown as Manifest).content)).toBe(hash);
    expect(results).toMatchObject({ benchmark_run_uid: uid, provisional: true });
    await expect(get(uid, ["everything"])).rejects.toThrow(refused("filter_invalid"));
  });

  test("stays readable after its suite is deleted", async () => {
    const uid = await launch();
    await world.benchmarks.deleteSuite({ factoryUid, suiteUid }, call(OWNER));
    expect((await get(uid)).suiteName).toBe("Core");
    expect((await list()).runs.map((run) => run.uid)).toEqual([uid]);
  });

  test("is hidden from other teams like an absent one, and not found under another suite or factory", async () => {
    const uid = await launch();
    await expect(get(uid, [], STRANGER)).rejects.toThrow(refused("factory_not_found"));
    const own = world.aFactory({ teamUid: OTHER_TEAM });
    await expect(
      world.benchmarks.getBenchmarkRun({ factoryUid: own, suiteUid, runUid: uid }, call(STRANGER)),
    ).rejects.toThrow(refused("benchmark_run_not_found"));
    await expect(
      world.benchmarks.getBenchmarkRun({ factoryUid, suiteUid: newUid(), runUid: uid }, call(OWNER)),
    ).rejects.toThrow(refused("benchmark_run_not_found"));
    await expect(get(newUid())).rejects.toThrow(refused("benchmark_run_not_found"));
    await expect(get("run-1")).rejects.toThrow(refused("benchmark_run_not_found"));
    expect((await get(uid, [], VIEWER)).uid).toBe(uid);
  });
});

describe("the list of benchmark runs", () => {
  test("has the newest first in pages, filtered by state", async () => {
    const uids: string[] = [];
    for (let n = 0; n < 4; n++) {
      world.clock.advance(1_000);
      uids.unshift(await launch());
    }
    await cancel(uids[2]!);
    const first = await list({ pageSize: 3 });
    const second = await list({ pageSize: 3, pageToken: first.nextPageToken });
    expect([...first.runs, ...second.runs].map(({ uid }) => uid)).toEqual(uids);
    expect(second.nextPageToken).toBe("");
    expect((await list({ states: ["cancelled"] })).runs.map(({ uid }) => uid)).toEqual([uids[2]]);
    expect((await list({ states: ["cancelled", "pending"] })).runs).toHaveLength(4);
    await expect(list({ states: ["lost"] })).rejects.toThrow(refused("filter_invalid"));
    await expect(list({ states: ["pending"], pageToken: first.nextPageToken })).rejects.toThrow(
      refused("invalid_cursor"),
    );
  });

  test("shows the same progress and results as one benchmark run, and its manifest only when that is included", async () => {
    const uid = await launch();
    await finishTrials();
    const include = ["launch_settings", "results"];
    expect((await list({ include })).runs).toEqual([await get(uid, include)]);
    expect((await list({ include: ["results"] })).runs).toEqual([await get(uid, ["results"])]);
    expect((await list()).runs).toEqual([await get(uid)]);
  });

  test("is empty for an unknown suite and for one of another factory; the factory must be visible", async () => {
    await launch();
    expect((await list({ suiteUid: newUid() })).runs).toEqual([]);
    expect((await list({ suiteUid: "core" })).runs).toEqual([]);
    expect((await list({ factoryUid: world.aFactory() })).runs).toEqual([]);
    await expect(list({}, STRANGER)).rejects.toThrow(refused("factory_not_found"));
    const own = world.aFactory({ teamUid: OTHER_TEAM });
    expect((await list({ factoryUid: own }, STRANGER)).runs).toEqual([]);
  });
});

describe("cancelling a benchmark run", () => {
  test("cancels the trials that have not ended with their runs, and does not change those that had", async () => {
    const uid = await launch();
    await settle(world.service);
    const [ended, ...others] = queuedRuns(world);
    world.orchestrator.finish(ended!.uid);
    await settle(world.service);
    const run = await cancel(uid);
    expect(run).toMatchObject({
      state: "cancelled",
      progress: { trial_progress: { succeeded: 1, cancelled: 3, completed: 4 }, score_progress: { not_scoreable: 3 } },
    });
    await settle(world.service);
    expect(world.orchestrator.cancelled).toEqual(expect.arrayContaining(others.map((other) => other.uid)));
    expect(queuedRuns(world)).toEqual([]);
    expect((await trialsOf(world, { uid })).map(({ state }) => state).toSorted()).toEqual([
      "cancelled",
      "cancelled",
      "cancelled",
      "succeeded",
    ]);
    expect((await get(uid, ["results"])).results).toMatchObject({
      run_state: "cancelled",
      incomplete_reason: "The benchmark run was cancelled.",
    });
    expect((await world.eventTypes()).filter((type) => type.startsWith("benchmark_run"))).toEqual([
      "benchmark_run.created",
      "benchmark_run.finished",
    ]);
  });

  test("before anything started starts nothing", async () => {
    const uid = await launch();
    await cancel(uid);
    await settle(world.service);
    expect(queuedRuns(world)).toEqual([]);
    expect(await get(uid)).toMatchObject({
      state: "cancelled",
      progress: { trial_count: null, trial_progress: { cancelled: 4 } },
    });
  });

  test("is refused when it has finished, also by concurrent cancels", async () => {
    const uid = await launch();
    const results = await Promise.allSettled([cancel(uid), cancel(uid), cancel(uid)]);
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    await expect(cancel(uid)).rejects.toThrow(
      expect.objectContaining({ kind: "invalid_argument", reason: "benchmark_run_finished" }),
    );
  });

  test("needs the right to manage runs", async () => {
    const uid = await launch();
    await expect(cancel(uid, VIEWER)).rejects.toThrow(refused("not_authorized"));
    await expect(cancel(uid, STRANGER)).rejects.toThrow(refused("factory_not_found"));
    expect((await get(uid)).state).toBe("pending");
  });
});

test("a replay scores the trials of a finished benchmark run again without running them", async () => {
  const first = await launch();
  await finishTrials();
  const runsBefore = world.orchestrator.runs.size;
  const { uid } = await world.benchmarks.launchBenchmark(
    { factoryUid, suiteUid, repetitionCount: 1, historicalReplayRunUid: first },
    call(OWNER),
  );
  await finishTrials();
  expect(await get(uid)).toMatchObject({
    state: "completed",
    manifestHash: (await get(first)).manifestHash,
    progress: { score_progress: { received: 4, expected: 4 } },
  });
  expect(world.orchestrator.runs.size).toBe(runsBefore);
  expect((await trialsOf(world, { uid })).map(({ run_uid: run }) => run)).toEqual(
    (await trialsOf(world, { uid: first })).map(({ run_uid: run }) => run),
  );
});
