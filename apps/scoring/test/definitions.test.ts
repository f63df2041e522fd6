import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { JsonObject } from "@bufbuild/protobuf";
import { serviceCaller } from "@millwright/caller";
import { newUid, runnerUidOf } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { domainError, eventually } from "@millwright/testing";
import { OWNER, startWorld, TEAM, type World } from "./setup.ts";

let w: World;
let factoryUid: string;
beforeAll(async () => {
  w = await startWorld();
});
beforeEach(async () => {
  await w.reset();
  factoryUid = w.aFactory({ management: "service_files" });
});
afterAll(() => w?.stop());

const as = call(OWNER);
const asFactories = call(serviceCaller("factories", "r-1", { type: "user", uid: "applier" }));
const part = (slug: string, more: JsonObject = {}): JsonObject => ({
  slug,
  name: slug,
  agents: "*",
  labels: [
    { value: "good", score: 1 },
    { value: "bad", score: 0 },
  ],
  passing_score: 0.5,
  sampling_rate: 25,
  model: "judge-large",
  self_improvement: false,
  enabled: true,
  prompt: "Is it good?",
  ...more,
});
const stage = (version: number, scorers: JsonObject[], dryRun = false) =>
  w.definitionOwner.stageDefinition(
    { factoryUid, teamUid: TEAM, version: BigInt(version), definition: { scorers }, dryRun },
    asFactories,
  );
const activate = async (version: number) =>
  Number(
    (await w.definitionOwner.activateDefinition({ factoryUid, version: BigInt(version) }, asFactories)).activeVersion,
  );
const list = async () => (await w.scorers.listScorers({ factoryUid }, as)).scorers;
const apply = async (version: number, scorers: JsonObject[]) => {
  expect((await stage(version, scorers)).diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
  expect(await activate(version)).toBe(version);
  return list();
};
const aScore = (scorerUid: string, state = "scored", judgeRunUid: string | null = null) =>
  w.rows(
    `INSERT INTO attempts (uid, scorer_uid, run_uid, factory_uid, team_uid, trigger_source, requester_type, requester_uid, state, is_current, config, run_version, classification, score,
                           scored_at, judge_run_uid, attempted_at)
     VALUES ($1, $2, $3, $4, $5, 'automatic', 'user', 'u', $6, true, '{}', 1, CASE $6 WHEN 'scored' THEN 'good' END, CASE $6 WHEN 'scored' THEN 1.0 END, CASE $6 WHEN 'scored' THEN now() END, $7, now())`,
    [newUid(), scorerUid, newUid(), factoryUid, TEAM, state, judgeRunUid],
  );

describe("scorers of a definition", () => {
  test("are inert until their version is activated; the rate of a file is its own, 25 by default of the parser", async () => {
    const agentUid = w.anAgent(factoryUid, "builder");
    await stage(1, [part("style", { name: "Style", description: "d", agents: ["builder"] })]);
    expect(await list()).toEqual([]);
    await activate(1);
    expect(await list()).toMatchObject([
      {
        name: "Style",
        description: "d",
        teamUid: TEAM,
        scopeMode: "selected_agents",
        agents: [{ agentUid, includeDescendants: false, name: "builder" }],
        samplingRate: 25,
        threshold: 0.5,
        modelId: "judge-large",
        version: 1,
      },
    ]);
    expect(await w.rows("SELECT type, actor_uid FROM stream.event_pending")).toEqual([
      { type: "millwright.scorer.created.v1", actor_uid: "applier" },
    ]);
  });

  test("are the same as long as their directory is there, whatever their name; unchanged ones have no new version", async () => {
    const [first] = await apply(1, [part("style"), part("speed")].slice(0, 1));
    const both = await apply(2, [part("style"), part("speed", { enabled: false })]);
    expect(both.find(({ uid }) => uid === first!.uid)).toMatchObject({ version: 1 });
    const renamed = await apply(3, [part("style", { name: "speed" }), part("speed", { name: "style" })]);
    expect(renamed.map(({ uid, name, version }) => [uid === first!.uid, name, version])).toEqual([
      [true, "speed", 2],
      [false, "style", 2],
    ]);
    expect(await w.rows("SELECT enabled FROM scorers WHERE slug = 'speed'")).toEqual([{ enabled: true }]);
  });

  test("without their file are deleted as by DELETE, with their results, as the plan announced", async () => {
    const judge = w.orchestrator.aRun({ teamUid: TEAM, state: "INPROGRESS" });
    const [style] = await apply(1, [part("style")]);
    await aScore(style!.uid);
    await aScore(style!.uid, "judging", judge.uid);
    const planned = await stage(2, [part("other")], true);
    expect(planned.plan.map(({ kind, name, action }) => [kind, name, action])).toEqual([
      ["scorer", "other", "create"],
      ["scorer", "style", "delete"],
    ]);
    expect(planned.diagnostics).toMatchObject([
      {
        path: "scorers/style/scorer.md",
        code: "FF_MISSING_FILE",
        severity: "warning",
        message: expect.stringContaining("its scores (1)"),
      },
    ]);
    expect(await list()).toHaveLength(1);
    expect((await apply(2, [])).map(({ name }) => name)).toEqual([]);
    for (const table of ["attempts", "self_improvements"]) expect(await w.rows(`SELECT 1 FROM ${table}`)).toEqual([]);
    w.service.work.start();
    await eventually(() => expect(w.orchestrator.cancelled).toEqual([judge.uid]));
    await w.service.work.stop();
    const [again] = await apply(3, [part("style")]);
    expect(again!.uid).not.toBe(style!.uid);
  });

  test("change through their files only; scorers of the API beside them are untouched", async () => {
    const live = await w.aScorer({ factoryUid, name: "Live" });
    await apply(1, [part("style")]);
    const { uid } = (await list()).find(({ name }) => name === "style")!;
    const refused = domainError({ kind: "conflict", reason: "managed_by_files" });
    await expect(
      w.scorers.updateScorer({ scorer: { uid, factoryUid, name: "x" }, updateMask: { paths: ["name"] } }, as),
    ).rejects.toEqual(refused);
    await expect(w.scorers.deleteScorer({ factoryUid, scorerUid: uid }, as)).rejects.toEqual(refused);
    await expect(w.scorers.putSelfImprovement({ factoryUid, selfImprovement: { scorerUid: uid } }, as)).rejects.toEqual(
      refused,
    );
    await apply(2, [part("style", { self_improvement: true })]);
    expect(
      (await w.scorers.putSelfImprovement({ factoryUid, selfImprovement: { scorerUid: uid, failureThreshold: 3 } }, as))
        .selfImprovement,
    ).toMatchObject({ failureThreshold: 3 });
    await expect(w.scorers.deleteSelfImprovement({ factoryUid, scorerUid: uid }, as)).rejects.toEqual(refused);
    await apply(3, []);
    expect((await list()).map((scorer) => scorer.uid)).toEqual([live.uid]);
  });

  test("that are wrong are reported at their files, and nothing is staged", async () => {
    await w.aScorer({ factoryUid, name: "Taken" });
    const { diagnostics } = await stage(1, [
      part("model", { model: "gpt-0" }),
      part("labels", { passing_score: 0 }),
      part("taken", { name: "taken" }),
      part("many", { agents: Array.from({ length: 101 }, (_, n) => `a${n}`) }),
    ]);
    expect(diagnostics.map(({ path, keys, code, severity }) => [path, keys, code, severity])).toEqual([
      ["scorers/model/scorer.md", ["model"], "FF_INVALID_REFERENCE", "error"],
      ["scorers/labels/scorer.md", ["labels"], "FF_INVALID_VALUE", "error"],
      ["scorers/many/scorer.md", ["agents"], "FF_LIMIT_EXCEEDED", "error"],
      ["scorers/taken/scorer.md", ["name"], "FF_DUPLICATE_NAME", "error"],
    ]);
    expect(await w.rows("SELECT 1 FROM definition_stages")).toEqual([]);
    await stage(1, [part("fine")], true);
    expect(await w.rows("SELECT 1 FROM definition_stages")).toEqual([]);
    await expect(stage(1, [{ slug: "x" }])).rejects.toEqual(domainError({ reason: "definition_malformed" }));
  });

  test("are activated also when a scorer of the API took their name after the stage", async () => {
    await stage(1, [part("style", { name: "Style" })]);
    await w.aScorer({ factoryUid, name: "style" });
    await activate(1);
    expect((await list()).map(({ name }) => name)).toEqual(["style", "Style (style)"]);
  });

  test("leave out agents that are disabled when the version is activated", async () => {
    const agentUid = w.anAgent(factoryUid, "builder");
    w.identity.anAgent({ teamUid: TEAM, factoryUid, name: "resting", enabled: false });
    expect(await apply(1, [part("style", { agents: ["builder", "resting"] })])).toMatchObject([
      { agents: [{ agentUid }] },
    ]);
  });

  test("roll forward only; a missing stage is an error, and a dropped one is gone", async () => {
    await apply(2, [part("two")]);
    await stage(1, [part("one")]);
    expect(await activate(1)).toBe(2);
    await stage(3, [part("three")]);
    await w.definitionOwner.discardDefinition({ factoryUid, version: 3n }, asFactories);
    await expect(activate(3)).rejects.toEqual(
      domainError({ kind: "conflict", reason: "stage_missing", retryable: true }),
    );
    expect((await list()).map(({ name }) => name)).toEqual(["two"]);
    await stage(4, [part("four")]);
    expect(await Promise.all([activate(4), activate(4)])).toEqual([4, 4]);
    expect((await list()).map(({ name }) => name)).toEqual(["four"]);
  });
});

describe("suites of a definition", () => {
  const commit = "a".repeat(40);
  const task = (slug: string, more: JsonObject = {}): JsonObject => ({
    slug,
    title: slug,
    prompt: "Fix it.",
    success_criteria: "It is fixed.",
    ...more,
  });
  const suite = (slug: string, more: JsonObject = {}): JsonObject => ({
    slug,
    name: slug,
    agent: "foreman",
    tasks: [],
    ...more,
  });
  const stageSuites = (version: number, benchmarks: JsonObject[], dryRun = false) =>
    w.definitionOwner.stageDefinition(
      { factoryUid, teamUid: TEAM, version: BigInt(version), definition: { benchmarks }, dryRun },
      asFactories,
    );
  const suites = async () => (await w.benchmarks.listSuites({ factoryUid }, as)).suites;
  const read = async (suiteUid: string) => (await w.benchmarks.getSuite({ factoryUid, suiteUid }, as)).suite!;
  const applySuites = async (version: number, benchmarks: JsonObject[]) => {
    expect((await stageSuites(version, benchmarks)).diagnostics.filter(({ severity }) => severity === "error")).toEqual(
      [],
    );
    await activate(version);
    return suites();
  };
  let agentUid: string;
  beforeEach(() => {
    agentUid = w.anAgent(factoryUid, "foreman");
  });

  test("are created with their tasks and configurations on activation", async () => {
    const refs = [`github.com:acme/shop@${commit}`, `gitlab.com:group/sub/api@${commit}`];
    const [made] = await applySuites(1, [
      suite("daily", {
        description: "d",
        tasks: [task("one", { starting_repo_refs: refs, tags: ["t"] }), task("two")],
        configurations: [
          { role: "baseline", display_name: "Now", model: "auto" },
          {
            role: "candidate",
            harness: { type: "claude", auth: { source: "managedSecret", secret_name: "K" } },
            runner: "box",
          },
        ],
      }),
    ]);
    const found = await read(made!.uid);
    expect(found).toMatchObject({
      name: "daily",
      description: "d",
      agentUid,
      factoryAgentType: "foreman",
      version: 1,
      creatorUid: "applier",
      tasks: [{ title: "one", tags: ["t"] }, { title: "two" }],
      configurations: [
        { role: "baseline", displayName: "Now", model: "auto" },
        { role: "candidate", harness: "claude", harnessAuthSecretName: "K", runnerUid: runnerUidOf(factoryUid, "box") },
      ],
    });
    expect(found.tasks[0]!.startingRepoRefs).toMatchObject([
      { codeForge: "github", owner: "acme", repo: "shop", ref: commit },
      { codeForge: "gitlab", owner: "group/sub", repo: "api", ref: commit },
    ]);
  });

  test("retain their uids and those of tasks and configurations as long as their files are there", async () => {
    const configurations = [{ role: "baseline" }];
    const [made] = await applySuites(1, [suite("daily", { tasks: [task("one"), task("two")], configurations })]);
    const before = await read(made!.uid);
    await applySuites(2, [suite("daily", { tasks: [task("one"), task("two")], configurations })]);
    expect(await read(made!.uid)).toEqual(before);
    const [renamed] = await applySuites(3, [
      suite("daily", {
        name: "Nightly",
        tasks: [task("two", { title: "one" }), task("one", { title: "two" })],
        configurations: [{ role: "candidate" }],
      }),
    ]);
    const after = await read(renamed!.uid);
    expect(after).toMatchObject({
      uid: made!.uid,
      name: "Nightly",
      version: 2,
      configurations: [{ uid: before.configurations[0]!.uid, role: "candidate" }],
    });
    expect(after.tasks.map(({ uid, title }) => [uid, title])).toEqual([
      [before.tasks[1]!.uid, "one"],
      [before.tasks[0]!.uid, "two"],
    ]);
  });

  test("without their files are deleted, as the plan announced, and suites of the API are untouched", async () => {
    const { suite: live } = await w.benchmarks.createSuite(
      { suite: { factoryUid, name: "Live", agentUid, factoryAgentType: "foreman" } },
      as,
    );
    await applySuites(1, [suite("daily")]);
    const planned = await stageSuites(2, [], true);
    expect(planned.plan.map(({ kind, name, action }) => [kind, name, action])).toEqual([
      ["benchmark", "daily", "delete"],
    ]);
    expect(planned.diagnostics).toMatchObject([
      {
        path: "benchmarks/daily/suite.yaml",
        code: "FF_MISSING_FILE",
        severity: "warning",
        message: expect.stringContaining("stay readable"),
      },
    ]);
    expect((await applySuites(2, [])).map(({ uid }) => uid)).toEqual([live!.uid]);
  });

  test("change through their files only", async () => {
    const [made] = await applySuites(1, [suite("daily", { tasks: [task("one")] })]);
    const suiteUid = made!.uid;
    const taskUid = (await read(suiteUid)).tasks[0]!.uid;
    const refused = domainError({ kind: "conflict", reason: "managed_by_files" });
    await expect(
      w.benchmarks.updateSuite(
        { suite: { uid: suiteUid, factoryUid, name: "x" }, updateMask: { paths: ["name"] } },
        as,
      ),
    ).rejects.toEqual(refused);
    await expect(w.benchmarks.deleteSuite({ factoryUid, suiteUid }, as)).rejects.toEqual(refused);
    await expect(
      w.benchmarks.addTask({ factoryUid, suiteUid, task: { title: "t", prompt: "p", successCriteria: "c" } }, as),
    ).rejects.toEqual(refused);
    await expect(
      w.benchmarks.updateTask(
        { factoryUid, suiteUid, task: { uid: taskUid, title: "t" }, updateMask: { paths: ["title"] } },
        as,
      ),
    ).rejects.toEqual(refused);
    await expect(w.benchmarks.deleteTask({ factoryUid, suiteUid, taskUid }, as)).rejects.toEqual(refused);
  });

  test("that are wrong are reported at their files, and nothing is staged", async () => {
    await w.benchmarks.createSuite({ suite: { factoryUid, name: "Taken", agentUid, factoryAgentType: "foreman" } }, as);
    const { diagnostics } = await stageSuites(1, [
      suite("roles", { configurations: [{ role: "baseline" }, { role: "baseline" }] }),
      suite("model", { configurations: [{ role: "baseline", model: "gpt-0" }] }),
      suite("titles", { tasks: [task("a", { title: "Same" }), task("b", { title: "Same" })] }),
      suite("task", { tasks: [task("long", { title: "t".repeat(501) })] }),
      suite("taken"),
    ]);
    expect(diagnostics.map(({ path, keys, code }) => [path, keys, code])).toEqual([
      ["benchmarks/roles/suite.yaml", ["configurations"], "FF_INVALID_VALUE"],
      ["benchmarks/model/suite.yaml", ["configurations", "0", "model"], "FF_INVALID_REFERENCE"],
      ["benchmarks/titles/suite.yaml", ["tasks"], "FF_INVALID_VALUE"],
      ["benchmarks/task/tasks/long.yaml", ["title"], "FF_INVALID_VALUE"],
      ["benchmarks/taken/suite.yaml", ["name"], "FF_DUPLICATE_NAME"],
    ]);
    expect(await w.rows("SELECT 1 FROM definition_stages")).toEqual([]);
    await expect(stageSuites(1, [{ slug: "x" }])).rejects.toEqual(domainError({ reason: "definition_malformed" }));
  });
});

test("a deleted factory takes its scorers, their results and its stages along", async () => {
  await apply(1, [part("style")]);
  await stage(2, [part("style")]);
  const [live, other] = [await w.aScorer({ factoryUid, name: "Live" }), await w.aScorer()];
  await aScore(live.uid);
  w.factories.feed.push({ type: "millwright.factory.deleted.v1", entityUid: factoryUid, teamUid: TEAM });
  for (const consumer of w.service.consumers) await consumer.drain();
  expect(await w.rows("SELECT uid FROM scorers")).toEqual([{ uid: other.uid }]);
  for (const table of ["attempts", "definition_stages", "definition_versions"])
    expect(await w.rows(`SELECT 1 FROM ${table}`)).toEqual([]);
  expect((await w.eventTypes()).filter((type) => type === "scorer.deleted")).toHaveLength(2);
});
