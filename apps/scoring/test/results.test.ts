import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { newUid, NIL_UUID } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { domainError } from "@millwright/testing";
import { benchmarkResults } from "../src/domain/benchmark-results.ts";
import { insertRun, insertScorers, type StoredRun } from "./benchmark-rows.ts";
import {
  BASE,
  CANDIDATE,
  CONTENT,
  CORRECTNESS,
  HASH,
  MANIFEST,
  PLAN,
  statsOf,
  STYLE,
  TASKS,
} from "./benchmark-samples.ts";
import { NOW, OWNER, startWorld, STRANGER, VIEWER, type World } from "./setup.ts";

let world: World;
let factoryUid: string;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());
beforeEach(async () => {
  await world.reset();
  factoryUid = world.aFactory();
  await insertScorers(world, factoryUid);
});

const aRun = (base: string, candidate: string, more: { suiteUid?: string; state?: string } = {}) =>
  insertRun(world, { factoryUid, samples: { [BASE]: base, [CANDIDATE]: candidate }, ...more });
type Filter = {
  taskUids?: string[];
  tags?: string[];
  configurationUids?: string[];
  scorerUids?: string[];
  include?: string[];
};
const results = async (ref: StoredRun, filter: Filter = {}) =>
  (await world.benchmarks.getBenchmarkResults({ ...ref, ...filter }, call(OWNER))).results!;

describe("results", () => {
  test.each([
    ["a complete run", "111 110 111", "000 011 111"],
    ["coverage below 100 %", "11i u1j 1ac", "0ii 0aa 01u"],
    ["ties and zero variance", "111 111 111", "111 111 111"],
    ["no outcome", "iii uuu ccc", "iii uuu ccc"],
    ["trials that have not ended", "1rp ppp ppp", "rrp ppp ppp"],
    ["trials that were cancelled before they were dispatched", "11c xxx xxx", "1cx xxx xxx"],
  ])("of %s are computed from the rows", async (_what, base, candidate) => {
    const state = /[rpj]/.test(base) ? "running" : "completed";
    const ref = await aRun(base, candidate, { state });
    const run = {
      uid: ref.runUid as never,
      suiteName: "Nightly",
      state,
      repetitionCount: 3,
      incompleteReason: null,
      manifestHash: HASH,
      startedAt: NOW,
      completedAt: NOW,
    } as const;
    const expected = benchmarkResults({
      run,
      plan: PLAN,
      stats: statsOf({ [BASE]: base, [CANDIDATE]: candidate }),
      metrics: { include: new Set() },
      now: NOW,
    });
    const found = await results(ref);
    for (const name of [
      "trial_progress",
      "score_progress",
      "trials_being_judged",
      "trials_scoring_finished",
      "infra_failed_trials",
      "coverage",
      "scorers",
      "provisional",
      "summary_status",
    ])
      expect([name, found[name]]).toEqual([name, expected[name]]);
    const outcomes = (document: typeof found): unknown =>
      (document["configurations"] as Record<string, unknown>[]).map(
        ({ uid, scoring, coverage, retry_count, infra_failed_trials }) => ({
          uid,
          scoring,
          coverage,
          retry_count,
          infra_failed_trials,
        }),
      );
    expect(outcomes(found)).toEqual(outcomes(expected));
  });

  test("select trials by task and by tag, in every aggregate", async () => {
    const ref = await aRun("111 110 000", "000 111 11i");
    const passes = async (filter: Filter): Promise<number[]> =>
      ((await results(ref, filter))["configurations"] as { scoring: { pass_count: number } }[]).map(
        ({ scoring }) => scoring.pass_count,
      );
    expect(await passes({})).toEqual([5, 5]);
    expect(await passes({ taskUids: [TASKS[2]!] })).toEqual([0, 2]);
    expect(await passes({ taskUids: [TASKS[0]!, TASKS[1]!.toUpperCase()] })).toEqual([5, 3]);
    expect(await passes({ tags: ["fast"] })).toEqual([5, 3]);
    expect(await passes({ tags: ["fast"], taskUids: [TASKS[1]!] })).toEqual([2, 3]);
    expect(await passes({ tags: ["none"] })).toEqual([0, 0]);
    expect(await results(ref, { tags: ["api"] })).toMatchObject({
      trial_progress: { total: 6 },
      coverage: { expected: 12 },
      run_metrics: { cost_usd: 0.072 },
    });
  });

  test("limit only metric rows by configuration and scorer", async () => {
    const ref = await aRun("111 110 000", "000 111 11i");
    const document = await results(ref, {
      configurationUids: [CANDIDATE],
      scorerUids: [STYLE],
      include: ["configuration_metrics", "task_metrics"],
    });
    expect(document).toMatchObject({
      configurations: [{}, {}],
      configuration_metrics: [{ configuration_uid: CANDIDATE, pass_count: 5 }],
    });
    expect(document["task_metrics"]).toEqual(
      TASKS.map((task_uid) => expect.objectContaining({ configuration_uid: CANDIDATE, scorer_uid: STYLE, task_uid })),
    );
    expect("tag_metrics" in document).toBe(false);
  });

  test("leave out a deleted scorer, and have no outcomes without the one for correctness", async () => {
    const ref = await aRun("11a", "00i");
    await world.rows("DELETE FROM scorers WHERE uid = $1", [CORRECTNESS]);
    expect(await results(ref)).toMatchObject({
      scorers: [{ scorer_uid: STYLE }],
      configurations: [{ scoring: { pass_rate: null, coverage: { rate: 0 } } }, { scoring: { pass_rate: null } }],
    });
  });

  test.each([
    ["a task that is no UUID", { taskUids: ["x"] }],
    ["the nil UUID", { configurationUids: [NIL_UUID] }],
    ["a scorer that is no UUID", { scorerUids: [""] }],
    ["an unknown include", { include: ["metrics"] }],
  ])("refuse %s", async (_what, filter) =>
    expect(results(await aRun("1", "1"), filter)).rejects.toEqual(domainError({ reason: "filter_invalid" })),
  );

  test("are hidden like absent ones from other teams, other suites and runs", async () => {
    const ref = await aRun("1", "0");
    const read = (more: Partial<StoredRun>, caller = OWNER) =>
      world.benchmarks.getBenchmarkResults({ ...ref, ...more }, call(caller));
    await expect(read({}, VIEWER)).resolves.toMatchObject({});
    await expect(read({}, STRANGER)).rejects.toEqual(domainError({ reason: "factory_not_found" }));
    for (const hidden of [
      { suiteUid: newUid() },
      { runUid: newUid() },
      { runUid: "x" },
      { factoryUid: world.aFactory() },
    ])
      await expect(read(hidden)).rejects.toEqual(domainError({ reason: "benchmark_run_not_found" }));
    await expect(
      read({}, { ...OWNER, run: { runUid: newUid(), rootRunUid: newUid(), executionId: "1", attempt: 1 } }),
    ).rejects.toEqual(domainError({ reason: "factory_not_found" }));
  });
});

describe("a comparison of two runs", () => {
  type Comparison = {
    shared_tasks: string[];
    configurations: { configuration_uid: string; verdict: string }[];
  } & Record<string, unknown>;
  const compare = async (ref: StoredRun, other: StoredRun): Promise<Comparison> =>
    (await world.benchmarks.compareBenchmarkRuns({ ...ref, otherRunUid: other.runUid }, call(OWNER)))
      .comparison as unknown as Comparison;

  test("states the difference per configuration and whether it is distinguishable", async () => {
    const other = await aRun("111 111 111", "110 110 110");
    const ref = await aRun("000 000 111", "110 110 11i", { suiteUid: other.suiteUid });
    const compared = await compare(ref, other);
    expect(compared).toMatchObject({
      run: { uid: ref.runUid, manifest_hash: HASH },
      other_run: { uid: other.runUid },
      same_manifest: true,
      shared_tasks: ["Add", "Fix", "Move"],
      changed_tasks: [],
      configurations: [
        {
          configuration_uid: BASE,
          run: { pass_count: 3 },
          other_run: { pass_count: 9 },
          distinguishable: true,
          verdict: "worse",
          difference: { difference: -0.666667, pairs: 9 },
        },
        {
          configuration_uid: CANDIDATE,
          distinguishable: false,
          verdict: "not distinguishable",
          difference: { difference: 0, pairs: 8, incomplete_pairs: 1 },
        },
      ],
    });
    expect((await compare(other, ref)).configurations.map(({ verdict }) => verdict)).toEqual([
      "better",
      "not distinguishable",
    ]);
  });

  test("counts only tasks that both have by title and names the others", async () => {
    const other = await aRun("111 111 111", "111 111 111");
    const [add, fix, move] = CONTENT.tasks;
    const content = { ...CONTENT, tasks: [add!, { ...fix!, prompt: "changed" }, { ...move!, title: "Rename" }] };
    const ref = await insertRun(world, {
      factoryUid,
      suiteUid: other.suiteUid,
      manifest: { ...MANIFEST, content },
      samples: { [BASE]: "110 111 000", [CANDIDATE]: "111 111 000" },
    });
    expect(await compare(ref, other)).toMatchObject({
      same_manifest: false,
      shared_tasks: ["Add", "Fix"],
      changed_tasks: ["Fix"],
      tasks_only_in_run: ["Rename"],
      tasks_only_in_other_run: ["Move"],
      configurations: [{ run: { pass_count: 5, fail_count: 1 }, other_run: { pass_count: 6, fail_count: 0 } }, {}],
    });
  });

  test("matches configurations by role where names differ and names those without a partner", async () => {
    const other = await aRun("111", "111");
    const [base, candidate] = CONTENT.configurations;
    const renamed = (displayName: string, role: "baseline" | "candidate") => ({
      ...(role === "baseline" ? base! : candidate!),
      display_name: displayName,
    });
    const configurations = [renamed("huge", "baseline"), renamed("tiny", "candidate"), renamed("mini", "candidate")];
    const identifiers = {
      ...MANIFEST.identifiers,
      configurations: [...MANIFEST.identifiers.configurations, { uid: newUid(), id: 3, runner_uid: "" }],
    };
    const ref = await insertRun(world, {
      factoryUid,
      suiteUid: other.suiteUid,
      manifest: { content: { ...CONTENT, configurations }, identifiers },
      samples: { [BASE]: "111" },
    });
    const compared = await compare(ref, other);
    expect(compared.configurations.map(({ configuration_uid: uid }) => uid)).toEqual([BASE]);
    expect(compared["unmatched_configurations"]).toEqual([CANDIDATE, identifiers.configurations[2]!.uid]);
  });

  test("is refused for one run, for runs without a shared task and for a run of another suite", async () => {
    const ref = await aRun("1", "1");
    const content = { ...CONTENT, tasks: CONTENT.tasks.map((task) => ({ ...task, title: `${task.title} more` })) };
    const foreign = await insertRun(world, { factoryUid, suiteUid: ref.suiteUid, manifest: { ...MANIFEST, content } });
    await expect(compare(ref, ref)).rejects.toEqual(domainError({ reason: "not_comparable" }));
    await expect(compare(ref, foreign)).rejects.toEqual(domainError({ reason: "not_comparable" }));
    await expect(compare(ref, await aRun("1", "1"))).rejects.toEqual(
      domainError({ reason: "benchmark_run_not_found" }),
    );
  });
});
