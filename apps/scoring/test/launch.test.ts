import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import type { scoring } from "@millwright/contracts";
import { newUid, runnerUidOf } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { manifestHash, type Manifest } from "../src/domain/manifest.ts";
import { OTHER_TEAM, OWNER, startWorld, STRANGER, VIEWER, type World } from "./setup.ts";

let world: World;
let factoryUid: string;
let agentUid: string;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());
beforeEach(async () => {
  await world.reset();
  factoryUid = world.aFactory();
  agentUid = world.anAgent(factoryUid, "builder");
});

type SuiteInit = MessageInitShape<typeof scoring.SuiteSchema>;
type LaunchInit = Omit<
  Partial<MessageInitShape<typeof scoring.LaunchBenchmarkRequestSchema>>,
  "$typeName" | "$unknown"
>;
const [HEAD, NEXT] = ["a".repeat(40), "b".repeat(40)];
const REF = { codeForge: "github", owner: "acme", repo: "shop", ref: "main" };
const task = (title: string, more: object = {}) => ({
  title,
  prompt: `Do ${title}.`,
  successCriteria: `${title} is done.`,
  ...more,
});
const CONFIGURATIONS = [{ role: "baseline" }, { role: "candidate", model: "judge-small" }];
const refused = (reason: string, field?: string) =>
  expect.objectContaining({ reason, ...(field !== undefined && { metadata: expect.objectContaining({ field }) }) });

async function aSuite(suite: SuiteInit = {}): Promise<scoring.Suite> {
  const init = {
    factoryUid,
    agentUid,
    factoryAgentType: "builder",
    name: "Core",
    tasks: [task("a"), task("b")],
    configurations: CONFIGURATIONS,
    ...suite,
  };
  return (await world.benchmarks.createSuite({ suite: init as SuiteInit }, call(OWNER))).suite!;
}

const launch = async (suiteUid: string, init: LaunchInit = {}, caller = OWNER): Promise<string> =>
  (await world.benchmarks.launchBenchmark({ factoryUid, suiteUid, repetitionCount: 1, ...init }, call(caller))).uid;
const getRun = async (suiteUid: string, runUid: string, include: string[] = []): Promise<scoring.BenchmarkRun> =>
  (await world.benchmarks.getBenchmarkRun({ factoryUid, suiteUid, runUid, include }, call(OWNER))).run!;
const manifestOf = async (runUid: string): Promise<Manifest> =>
  (await world.rows<{ manifest: Manifest }>("SELECT manifest FROM benchmark_runs WHERE uid = $1", [runUid]))[0]!
    .manifest;
const hashOf = async (runUid: string): Promise<string> =>
  (await world.rows<{ manifest_hash: string }>("SELECT manifest_hash FROM benchmark_runs WHERE uid = $1", [runUid]))[0]!
    .manifest_hash;
const count = async (table: string): Promise<number> => (await world.rows(`SELECT FROM ${table}`)).length;

describe("a launch", () => {
  test("creates tasks × configurations × repetitions trials in this order, with a score to come for each scorer", async () => {
    const { uid, tasks, configurations } = await aSuite();
    await world.aScorer({ factoryUid, name: "Style" });
    const runUid = await launch(uid, { repetitionCount: 2 });
    const trials = await world.rows<{ task_uid: string; configuration_uid: string; rep_index: number; state: string }>(
      "SELECT * FROM trials WHERE benchmark_run_uid = $1 ORDER BY position",
      [runUid],
    );
    const expected = tasks.flatMap((each) =>
      configurations.flatMap((configuration) => [0, 1].map((rep) => [each.uid, configuration.uid, rep, "pending"])),
    );
    expect(trials.map((row) => [row.task_uid, row.configuration_uid, row.rep_index, row.state])).toEqual(expected);
    expect(await world.rows("SELECT count(*) AS n, state FROM trial_scores GROUP BY state")).toEqual([
      { n: 16, state: "awaiting_trial" },
    ]);
    expect(await world.rows("SELECT kind, key FROM stream.work_items")).toEqual([
      { kind: "advance-benchmark", key: runUid },
    ]);
    expect((await world.eventTypes()).slice(-2)).toEqual(["scorer.created", "benchmark_run.created"]);
  });

  test("freezes tasks, configurations, agents, skills, environment and scorers; later edits change nothing", async () => {
    const layers = [
      {
        source: "agent",
        uid: agentUid,
        version: 3n,
        config: {
          prompt: "Be brief.",
          model_id: "judge-large",
          environment_id: "env-1",
          skills: ["review"],
          secrets: ["TOKEN"],
        } as JsonObject,
      },
      { source: "team", uid: newUid(), version: 1n, config: { memory_stores: [{ uid: newUid() }] } as JsonObject },
    ];
    world.identity.agents.get(agentUid)!.layers = layers;
    const helper = world.anAgent(factoryUid, "helper");
    world.orchestrator.environments.set("env-1", {
      name: "Node",
      docker_image: "node:24",
      github_repos: [{ owner: "acme", repo: "shop" }],
    });
    world.orchestrator.skills.push({ name: "review", body: "Review it." });
    world.orchestrator.commits.set("acme/shop@", HEAD);
    const suite = await aSuite({ tasks: [task("a", { tags: ["x"], labels: { k: "v" } })] });
    const runUid = await launch(suite.uid, {
      hasConfigurations: true,
      configurations: [
        { role: "candidate", model: "judge-small", agentConfigs: [{ agentUid: helper, model: "judge-large" }] },
      ],
    });
    const { content, identifiers } = await manifestOf(runUid);
    expect(content).toMatchObject({
      format: "millwright.benchmark.v1",
      repetition_count: 1,
      tasks: [
        {
          title: "a",
          prompt: "Do a.",
          success_criteria: "a is done.",
          tags: ["x"],
          labels: { k: "v" },
          repositories: [{ code_forge: "github", owner: "acme", repo: "shop", commit: HEAD }],
        },
      ],
      configurations: [
        {
          role: "candidate",
          model: "judge-small",
          agent_configs: [
            { agent_name: "builder", model: "" },
            { agent_name: "helper", model: "judge-large" },
          ],
        },
      ],
      scorers: [
        {
          name: "Task correctness",
          kind: "benchmark_task_correctness",
          labels: [
            { value: "pass", score: 1 },
            { value: "fail", score: 0 },
          ],
          model_id: "judge-large",
        },
      ],
    });
    expect(content.agents[0]).toEqual({
      name: "builder",
      layers: [
        {
          source: "agent",
          config: { prompt: "Be brief.", model_id: "judge-large", skills: ["review"], secrets: ["TOKEN"] },
        },
        { source: "team", config: {} },
      ],
      environment: { name: "Node", docker_image: "node:24", github_repos: [{ owner: "acme", repo: "shop" }] },
      skills: [{ name: "review", description: "About review", body: "Review it." }],
    });
    expect(identifiers).toMatchObject({
      suite_version: 1,
      agents: [{ uid: agentUid, layers: [{ version: 3 }, { version: 1 }] }, { uid: helper }],
      tasks: [{ uid: suite.tasks[0]!.uid }],
    });

    const hash = await hashOf(runUid);
    await world.benchmarks.addTask({ factoryUid, suiteUid: suite.uid, task: task("new") }, call(OWNER));
    world.orchestrator.commits.set("acme/shop@", NEXT);
    expect([await hashOf(runUid), manifestHash((await manifestOf(runUid)).content)]).toEqual([hash, hash]);
    expect(await hashOf(await launch(suite.uid, { hasTasks: true, taskUids: [suite.tasks[0]!.uid] }))).not.toBe(hash);
  });

  test("gives the same hash for the same inputs on another installation, and another one for another input", async () => {
    const suiteOf = async (model: string): Promise<string> => {
      world.identity.agents.get(agentUid)!.layers = [
        {
          source: "agent",
          uid: agentUid,
          version: BigInt(world.identity.agents.size),
          config: { model_id: model, environment_id: newUid() },
        },
      ];
      world.orchestrator.commits.set("acme/shop@main", HEAD);
      const { uid } = await aSuite({ tasks: [task("a", { startingRepoRefs: [REF] })] });
      await world.aScorer({ factoryUid, name: "Style" });
      return hashOf(await launch(uid, { repetitionCount: 3 }));
    };
    const here = await suiteOf("judge-large");
    factoryUid = world.aFactory();
    agentUid = world.anAgent(factoryUid, "builder");
    world.clock.advance(60_000);
    expect(await suiteOf("judge-large")).toBe(here);
    factoryUid = world.aFactory();
    agentUid = world.anAgent(factoryUid, "builder");
    expect(await suiteOf("judge-small")).not.toBe(here);
  });

  test("freezes the runners of agents and configurations by name and content, not by uid", async () => {
    const content = { docker_image: "node:24", setup_commands: ["npm ci"], os: "linux" };
    const [uid, own] = [newUid(), runnerUidOf(factoryUid, "small")];
    world.orchestrator.runners
      .set(uid, { name: "large", content })
      .set(own, { name: "small", content })
      .set(newUid(), { name: "unused", content });
    world.identity.agents.get(agentUid)!.layers = [
      { source: "agent", uid: agentUid, version: 1n, config: { runner: "small" } },
    ];
    const suite = await aSuite();
    const runUid = await launch(suite.uid, {
      hasConfigurations: true,
      configurations: [{ role: "baseline" }, { role: "candidate", runnerUid: uid.toUpperCase() }],
    });
    const { content: frozen } = await manifestOf(runUid);
    expect(frozen.runners).toEqual([
      { name: "large", content },
      { name: "small", content },
    ]);
    expect(frozen.configurations.map(({ runner }) => runner)).toEqual(["", "large"]);
    await expect(
      launch(suite.uid, { hasConfigurations: true, configurations: [{ role: "candidate", runnerUid: newUid() }] }),
    ).rejects.toEqual(refused("launch_invalid", "configurations"));
  });

  test("pins refs of tasks to commits; a complete commit hash is not resolved", async () => {
    world.orchestrator.commits.set("acme/shop@main", HEAD);
    const { uid } = await aSuite({
      tasks: [
        task("a", { startingRepoRefs: [REF] }),
        task("b", { startingRepoRefs: [{ ...REF, ref: NEXT.toUpperCase() }] }),
      ],
    });
    const { content } = await manifestOf(await launch(uid));
    expect(content.tasks.map(({ repositories }) => repositories[0]!.commit)).toEqual([HEAD, NEXT]);
  });

  test("is refused for a ref that does not exist, naming it", async () => {
    const { uid } = await aSuite({ tasks: [task("a", { startingRepoRefs: [{ ...REF, ref: "gone" }] })] });
    await expect(launch(uid)).rejects.toThrow(refused("launch_invalid", "starting_repo_refs"));
    await expect(launch(uid)).rejects.toThrow(/acme\/shop.*gone/);
  });

  test.each<[string, LaunchInit, string]>([
    ["no repetition", { repetitionCount: 0 }, "repetition_count"],
    ["more trials than the limit", { repetitionCount: 2_501 }, "repetition_count"],
    ["too many trials at once", { parallelism: 101 }, "parallelism"],
    ["an empty list of configurations", { hasConfigurations: true }, "configurations"],
    [
      "two baselines",
      { hasConfigurations: true, configurations: [{ role: "baseline" }, { role: "baseline" }] },
      "configurations",
    ],
    [
      "an override for a foreign agent",
      { hasConfigurations: true, configurations: [{ role: "baseline", agentConfigs: [{ agentUid: newUid() }] }] },
      "configurations",
    ],
    ["an empty list of tasks", { hasTasks: true }, "tasks"],
    ["an unknown task", { hasTasks: true, taskUids: [newUid()] }, "tasks"],
    ["an unknown scorer", { scorerSelection: [newUid()] }, "scorer_selection"],
    ["an unknown legacy scorer", { scorerSelection: ["123456"] }, "scorer_selection"],
    ["an unknown benchmark run to replay", { historicalReplayRunUid: newUid() }, "historical_replay_run_uid"],
  ])("is refused with %s", async (_, init, field) => {
    const { uid } = await aSuite();
    await expect(launch(uid, init)).rejects.toThrow(refused("launch_invalid", field));
    expect(await count("benchmark_runs")).toBe(0);
  });

  test("is refused with a task given twice, without configurations anywhere, without tasks, and with an unknown model", async () => {
    const suite = await aSuite({ configurations: [] });
    const [first] = suite.tasks;
    await expect(launch(suite.uid)).rejects.toThrow(refused("launch_invalid", "configurations"));
    const given = { hasConfigurations: true, configurations: [{ role: "candidate" }] };
    await expect(
      launch(suite.uid, { ...given, hasTasks: true, taskUids: [first!.uid, first!.uid.toUpperCase()] }),
    ).rejects.toThrow(refused("launch_invalid", "tasks"));
    await expect(
      launch(suite.uid, { hasConfigurations: true, configurations: [{ role: "candidate", model: "nope" }] }),
    ).rejects.toThrow(refused("model_unknown"));
    const empty = await aSuite({ name: "Empty", tasks: [] });
    await expect(launch(empty.uid)).rejects.toThrow(refused("launch_invalid", "tasks"));
  });

  test("of some tasks runs those in the order of the suite", async () => {
    const { uid, tasks } = await aSuite({ tasks: [task("a"), task("b"), task("c")] });
    const { content } = await manifestOf(
      await launch(uid, { hasTasks: true, taskUids: [tasks[2]!.uid, tasks[0]!.uid] }),
    );
    expect(content.tasks.map(({ title }) => title)).toEqual(["a", "c"]);
  });

  test("without a key creates a benchmark run each time; with a key the first answer is returned, also to concurrent requests", async () => {
    const { uid } = await aSuite();
    expect(await launch(uid)).not.toBe(await launch(uid));
    const results = await Promise.all(Array.from({ length: 5 }, () => launch(uid, { idempotencyKey: "k" })));
    expect(new Set(results).size).toBe(1);
    expect(await count("benchmark_runs")).toBe(3);
    await expect(launch(uid, { idempotencyKey: "k", repetitionCount: 2 })).rejects.toThrow(
      refused("idempotency_mismatch"),
    );
  });
});

describe("scorers of a launch", () => {
  const namesOf = async (runUid: string): Promise<string[]> =>
    (await manifestOf(runUid)).content.scorers.map(({ name }) => name);

  test("are the correctness scorer and those applicable to the agent; a selection narrows them by uid or legacy id", async () => {
    const other = world.anAgent(factoryUid, "other");
    const style = await world.aScorer({ factoryUid, name: "Style" });
    const tests = await world.aScorer({
      factoryUid,
      name: "Tests",
      scopeMode: "selected_agents",
      agents: [{ agentUid }],
    });
    const foreign = await world.aScorer({
      factoryUid,
      name: "Foreign",
      scopeMode: "selected_agents",
      agents: [{ agentUid: other }],
    });
    const { uid } = await aSuite();
    expect(await namesOf(await launch(uid))).toEqual(["Task correctness", "Style", "Tests"]);
    expect(await namesOf(await launch(uid, { scorerSelection: [tests.uid.toUpperCase()] }))).toEqual([
      "Task correctness",
      "Tests",
    ]);
    expect(await namesOf(await launch(uid, { scorerSelection: [String(style.id)] }))).toEqual([
      "Task correctness",
      "Style",
    ]);
    await expect(launch(uid, { scorerSelection: [foreign.uid] })).rejects.toThrow(
      refused("launch_invalid", "scorer_selection"),
    );
  });

  test("share one managed scorer per factory, also when the first launches are concurrent or its name is taken", async () => {
    await world.aScorer({ factoryUid, name: "TASK correctness" });
    const { uid } = await aSuite();
    await Promise.all(Array.from({ length: 4 }, () => launch(uid)));
    expect(
      await world.rows("SELECT name, enabled, sampling_rate::float8 AS rate FROM scorers WHERE kind <> 'user'"),
    ).toEqual([{ name: "Task correctness (2)", enabled: false, rate: 0 }]);
  });

  test("judge correctness with the factory's model for scoring, else with the platform's; a new model is a new version", async () => {
    const { uid } = await aSuite();
    const modelOf = async (): Promise<unknown> => {
      const { content, identifiers } = await manifestOf(await launch(uid));
      return [content.scorers[0]!.model_id, identifiers.scorers[0]!.version];
    };
    expect(await modelOf()).toEqual(["judge-large", 1]);
    world.factories.factories.get(factoryUid)!.scoringDefaultModel = "judge-small";
    expect([await modelOf(), await modelOf()]).toEqual([
      ["judge-small", 2],
      ["judge-small", 2],
    ]);
  });

  test("deleted while the launch is being frozen are left out", async () => {
    const style = await world.aScorer({ factoryUid, name: "Style" });
    world.orchestrator.commits.set("acme/shop@main", HEAD);
    const { uid } = await aSuite({ tasks: [task("a", { startingRepoRefs: [REF] })] });
    let deleted = false;
    world.orchestrator.beforeResolve = async () => {
      if (!deleted) await world.scorers.deleteScorer({ factoryUid, scorerUid: style.uid }, call(OWNER));
      deleted = true;
    };
    expect(await namesOf(await launch(uid))).toEqual(["Task correctness"]);
    expect(deleted).toBe(true);
  });
});

describe("a launch while the suite is edited", () => {
  test("freezes the one version that was current when it began", async () => {
    world.orchestrator.commits.set("acme/shop@main", HEAD);
    const { uid, tasks } = await aSuite({ tasks: [task("a", { startingRepoRefs: [REF] }), task("b")] });
    world.orchestrator.beforeResolve = async () => {
      await world.benchmarks.updateTask(
        {
          factoryUid,
          suiteUid: uid,
          task: { uid: tasks[0]!.uid, prompt: "edited" },
          updateMask: { paths: ["prompt"] },
        },
        call(OWNER),
      );
      await world.benchmarks.deleteTask({ factoryUid, suiteUid: uid, taskUid: tasks[1]!.uid }, call(OWNER));
    };
    const runUid = await launch(uid);
    const { content, identifiers } = await manifestOf(runUid);
    expect([
      content.tasks.map(({ prompt }) => prompt),
      identifiers.suite_version,
      (await getRun(uid, runUid)).suiteVersion,
    ]).toEqual([["Do a.", "Do b."], 1, 1]);
  });

  test("many at once: each manifest has the tasks of its version", async () => {
    const { uid } = await aSuite({ tasks: [task("t1")] });
    const add = async (index: number): Promise<void> =>
      void (await world.benchmarks.addTask({ factoryUid, suiteUid: uid, task: task(`t${index}`) }, call(OWNER)));
    const runs: string[] = [];
    await Promise.all([
      (async () => {
        for (let index = 2; index <= 8; index++) await add(index);
      })(),
      (async () => {
        for (let n = 0; n < 6; n++) runs.push(await launch(uid));
      })(),
    ]);
    for (const runUid of runs) {
      const { content, identifiers } = await manifestOf(runUid);
      expect(content.tasks).toHaveLength(identifiers.suite_version);
    }
  });

  test("of a suite that is deleted concurrently returns not found", async () => {
    world.orchestrator.commits.set("acme/shop@main", HEAD);
    const { uid } = await aSuite({ tasks: [task("a", { startingRepoRefs: [REF] })] });
    world.orchestrator.beforeResolve = async () =>
      void (await world.benchmarks.deleteSuite({ factoryUid, suiteUid: uid }, call(OWNER)));
    await expect(launch(uid)).rejects.toThrow(refused("suite_not_found"));
  });
});

describe("a replay", () => {
  const finish = (runUid: string) =>
    world.rows("UPDATE benchmark_runs SET state = 'completed', completed_at = now() WHERE uid = $1", [runUid]);

  test("has the frozen tasks and configurations of the replayed benchmark run with the scorers of now", async () => {
    const suite = await aSuite();
    const first = await launch(suite.uid, { repetitionCount: 2 });
    await finish(first);
    await world.benchmarks.updateTask(
      {
        factoryUid,
        suiteUid: suite.uid,
        task: { uid: suite.tasks[0]!.uid, prompt: "changed" },
        updateMask: { paths: ["prompt"] },
      },
      call(OWNER),
    );
    await world.aScorer({ factoryUid, name: "Style" });
    const replay = await launch(suite.uid, {
      historicalReplayRunUid: first,
      hasTasks: true,
      taskUids: [suite.tasks[0]!.uid],
    });
    const { content, identifiers } = await manifestOf(replay);
    expect([content.repetition_count, content.tasks.map(({ prompt }) => prompt), content.scorers.length]).toEqual([
      1,
      ["Do a."],
      2,
    ]);
    expect(identifiers.configurations).toEqual((await manifestOf(first)).identifiers.configurations);
    expect((await getRun(suite.uid, replay)).historicalReplayRunUid).toBe(first);
  });

  test("is refused of a run that has not finished, of another suite, with configurations, and with more repetitions", async () => {
    const { uid } = await aSuite();
    const first = await launch(uid);
    await expect(launch(uid, { historicalReplayRunUid: first })).rejects.toThrow(
      refused("launch_invalid", "historical_replay_run_uid"),
    );
    await finish(first);
    const other = await aSuite({ name: "Other" });
    await expect(launch(other.uid, { historicalReplayRunUid: first })).rejects.toThrow(
      refused("launch_invalid", "historical_replay_run_uid"),
    );
    const given = { historicalReplayRunUid: first, hasConfigurations: true, configurations: [{ role: "candidate" }] };
    await expect(launch(uid, given)).rejects.toThrow(refused("launch_invalid", "configurations"));
    await expect(launch(uid, { historicalReplayRunUid: first, repetitionCount: 2 })).rejects.toThrow(
      refused("launch_invalid", "repetition_count"),
    );
  });
});

describe("rights of a launch", () => {
  test("needs the right to create runs; another team sees no factory", async () => {
    const { uid } = await aSuite();
    await expect(launch(uid, {}, VIEWER)).rejects.toThrow(refused("not_authorized"));
    await expect(launch(uid, {}, STRANGER)).rejects.toThrow(refused("factory_not_found"));
    expect(await count("benchmark_runs")).toBe(0);
  });

  test("a suite of another team is not found through the caller's own factory", async () => {
    const { uid } = await aSuite();
    const own = world.aFactory({ teamUid: OTHER_TEAM });
    await expect(
      world.benchmarks.launchBenchmark({ factoryUid: own, suiteUid: uid, repetitionCount: 1 }, call(STRANGER)),
    ).rejects.toThrow(refused("suite_not_found"));
  });
});
