import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { newUid } from "@millwright/ids";
import type { scoring } from "@millwright/contracts";
import { call } from "@millwright/rpc";
import { OTHER_TEAM, OWNER, startWorld, STRANGER, TEAM, VIEWER, type World } from "./setup.ts";

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
type TaskInit = MessageInitShape<typeof scoring.SuiteTaskSchema>;
const TASK = { title: "Fix it", prompt: "Fix the bug.", successCriteria: "Tests pass." };
const refused = (reason: string, field?: string) =>
  expect.objectContaining({ reason, ...(field !== undefined && { metadata: expect.objectContaining({ field }) }) });

const create = (suite: SuiteInit = {}, idempotencyKey = "", caller = OWNER) =>
  world.benchmarks.createSuite(
    {
      suite: { factoryUid, agentUid, factoryAgentType: "builder", name: "Core", ...suite } as SuiteInit,
      idempotencyKey,
    },
    call(caller),
  );
const aSuite = async (suite: SuiteInit = {}): Promise<scoring.Suite> => (await create(suite)).suite!;
const get = async (suiteUid: string, caller = OWNER): Promise<scoring.Suite> =>
  (await world.benchmarks.getSuite({ factoryUid, suiteUid }, call(caller))).suite!;
const add = (suiteUid: string, task: TaskInit = {}, { caller = OWNER, idempotencyKey = "" } = {}) =>
  world.benchmarks.addTask(
    { factoryUid, suiteUid, task: { ...TASK, ...task } as TaskInit, idempotencyKey },
    call(caller),
  );
const patch = async (uid: string, paths: string[], suite: SuiteInit = {}): Promise<scoring.Suite> =>
  (
    await world.benchmarks.updateSuite(
      { suite: { ...suite, uid, factoryUid } as SuiteInit, updateMask: { paths } },
      call(OWNER),
    )
  ).suite!;
const patchTask = async (
  suiteUid: string,
  uid: string,
  paths: string[],
  task: TaskInit = {},
): Promise<scoring.SuiteTask> =>
  (
    await world.benchmarks.updateTask(
      { factoryUid, suiteUid, task: { ...task, uid } as TaskInit, updateMask: { paths } },
      call(OWNER),
    )
  ).task!;

describe("creating a suite", () => {
  test("returns it with its tasks, its version and its event", async () => {
    const suite = await aSuite({
      description: " d ",
      tasks: [TASK, { ...TASK, title: " Second " }],
      configurations: [{ role: "baseline" }, { role: "candidate", model: "m" }],
    });
    expect(suite).toMatchObject({
      name: "Core",
      description: "d",
      version: 1,
      agentUid,
      factoryAgentType: "builder",
      creatorUid: OWNER.principal.uid,
      teamUid: TEAM,
    });
    expect(suite.tasks.map(({ title }) => title)).toEqual(["Fix it", "Second"]);
    expect(suite.configurations).toMatchObject([
      { id: 1n, role: "baseline" },
      { id: 2n, role: "candidate", model: "m" },
    ]);
    expect(await get(suite.uid)).toEqual(suite);
    expect(await world.eventTypes()).toEqual(["benchmark_suite.created"]);
  });

  test("with a uid of the client returns the existing suite for the same content and a conflict for other content", async () => {
    const uid = newUid();
    const first = await create({ uid, tasks: [TASK] });
    const again = await create({ uid: uid.toUpperCase(), name: " Core ", tasks: [TASK] });
    expect([first.created, again.created, again.suite]).toEqual([true, false, first.suite]);
    await expect(create({ uid, tasks: [] })).rejects.toThrow(refused("suite_exists"));
    await expect(create({ uid, name: "Other" })).rejects.toThrow(refused("suite_exists"));
    expect(await world.eventTypes()).toHaveLength(1);
  });

  test("twice at once with one uid creates one suite", async () => {
    const uid = newUid();
    const results = await Promise.all(Array.from({ length: 6 }, () => create({ uid, tasks: [TASK] })));
    expect(results.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(results.map(({ suite }) => suite!.tasks[0]!.uid)).size).toBe(1);
  });

  test("with an idempotency key returns the first answer again, also after the suite changed, and refuses another body", async () => {
    const [first, concurrent] = await Promise.all([create({ tasks: [TASK] }, "k"), create({ tasks: [TASK] }, "k")]);
    expect(concurrent).toEqual(first);
    await add(first.suite!.uid, { title: "More" });
    expect(await create({ tasks: [TASK] }, "k")).toEqual(first);
    await expect(create({ name: "Other" }, "k")).rejects.toThrow(refused("idempotency_mismatch"));
  });

  test("names the agents that the suite's agent can delegate to, and the same ones to a repeated request", async () => {
    const reviewer = world.anAgent(factoryUid, "reviewer");
    const first = await create({}, "k");
    expect(first.suite!.spawnableDescendantAgentUids).toEqual([reviewer]);
    expect(await get(first.suite!.uid)).toEqual(first.suite);
    world.anAgent(factoryUid, "tester");
    expect(await create({}, "k")).toEqual(first);
  });

  test("with an idempotency key returns a response that the previous version stored", async () => {
    const first = await create({}, "k");
    await world.rows("UPDATE idempotency_keys SET response = response - 'descendants'");
    expect(await create({}, "k")).toEqual(first);
  });

  test.each<[string, SuiteInit, string, string | undefined]>([
    ["a blank name", { name: " " }, "suite_invalid", "name"],
    ["no agent", { agentUid: "" }, "suite_invalid", "agent_uid"],
    ["no agent type", { factoryAgentType: "" }, "suite_invalid", "factory_agent_type"],
    ["another agent type", { factoryAgentType: "foreman" }, "agent_type_mismatch", undefined],
    ["an unknown agent", { agentUid: newUid() }, "agent_not_found", undefined],
    [
      "two baselines",
      { configurations: [{ role: "baseline" }, { role: "baseline" }] },
      "suite_invalid",
      "configurations",
    ],
    ["one title twice", { tasks: [TASK, { ...TASK, title: "Fix it ", prompt: "other" }] }, "suite_invalid", "tasks"],
    ["a task without criteria", { tasks: [{ ...TASK, successCriteria: " " }] }, "suite_invalid", "success_criteria"],
    ["a task from an unknown run", { tasks: [{ ...TASK, sourceRunUid: newUid() }] }, "run_not_found", undefined],
    [
      "a rule with an unknown check",
      { tasks: [{ ...TASK, rule: { checks: [{ kind: "magic" }] } }] },
      "suite_invalid",
      "rule",
    ],
    ["a uid that is no UUID", { uid: "core" }, "suite_invalid", "uid"],
  ])("is refused with %s", async (_, suite, reason, field) => {
    await expect(create(suite)).rejects.toThrow(refused(reason, field));
    expect(await world.rows("SELECT FROM suites")).toHaveLength(0);
  });

  test("is refused with an agent of another factory, as with an absent one", async () => {
    const foreign = world.anAgent(world.aFactory(), "builder");
    await expect(create({ agentUid: foreign })).rejects.toThrow(refused("agent_not_found"));
  });

  test("is refused when the name is taken, whatever its case, until that suite is deleted", async () => {
    const suite = await aSuite();
    await expect(create({ name: "CORE" })).rejects.toThrow(refused("suite_name_taken"));
    await world.benchmarks.deleteSuite({ factoryUid, suiteUid: suite.uid }, call(OWNER));
    await expect(create({ name: "CORE" })).resolves.toMatchObject({ created: true });
  });
});

describe("reading suites", () => {
  test("lists the newest first in pages, without tasks; deleted ones are hidden", async () => {
    const uids: string[] = [];
    for (const name of ["a", "b", "c", "d"]) {
      world.clock.advance(1_000);
      uids.unshift((await aSuite({ name, tasks: [TASK] })).uid);
    }
    await world.benchmarks.deleteSuite({ factoryUid, suiteUid: uids[1]! }, call(OWNER));
    const first = await world.benchmarks.listSuites({ factoryUid, pageSize: 2 }, call(OWNER));
    const second = await world.benchmarks.listSuites(
      { factoryUid, pageSize: 2, pageToken: first.nextPageToken },
      call(OWNER),
    );
    expect([...first.suites, ...second.suites].map(({ uid }) => uid)).toEqual([uids[0], uids[2], uids[3]]);
    expect([first.suites[0]!.tasks, second.nextPageToken]).toEqual([[], ""]);
    await expect(
      world.benchmarks.listSuites({ factoryUid: world.aFactory(), pageToken: first.nextPageToken }, call(OWNER)),
    ).rejects.toThrow(refused("invalid_cursor"));
  });

  test("names the agents that the suite's agent can delegate to, sorted; none once it is gone", async () => {
    const others = [world.anAgent(factoryUid, "reviewer"), world.anAgent(factoryUid, "tester")];
    const suite = await aSuite();
    expect((await get(suite.uid)).spawnableDescendantAgentUids).toEqual(others.toSorted());
    world.identity.agents.get(agentUid)!.enabled = false;
    expect((await get(suite.uid)).spawnableDescendantAgentUids).toEqual([]);
  });
});

describe("changing a suite", () => {
  test("changes the masked fields and raises the version once per edit", async () => {
    const suite = await aSuite({ description: "d", configurations: [{ role: "baseline", model: "a" }] });
    const renamed = await patch(suite.uid, ["name"], { name: "Renamed", description: "ignored" });
    expect(renamed).toMatchObject({ name: "Renamed", description: "d", version: 2 });
    expect(await patch(suite.uid, ["description"])).not.toHaveProperty("description");
    const [baseline] = suite.configurations;
    const { configurations } = await patch(suite.uid, ["configurations"], {
      configurations: [{ role: "candidate" }, { uid: baseline!.uid, role: "baseline", model: "b" }],
    });
    expect(configurations).toMatchObject([
      { id: 2n, role: "candidate" },
      { id: 1n, uid: baseline!.uid, model: "b" },
    ]);
    expect(await world.eventTypes()).toEqual([
      "benchmark_suite.created",
      "benchmark_suite.updated",
      "benchmark_suite.updated",
      "benchmark_suite.updated",
    ]);
  });

  test("without effect changes neither version nor time", async () => {
    const suite = await aSuite({ tasks: [TASK] });
    world.clock.advance(1_000);
    expect(await patch(suite.uid, ["name", "tasks"], { name: "Core", tasks: suite.tasks })).toEqual(suite);
    expect(await patch(suite.uid, [])).toEqual(suite);
  });

  test("replaces all tasks; entries with a uid retain it, and titles can be exchanged", async () => {
    const {
      uid,
      tasks: [a, b, c],
    } = await aSuite({
      tasks: [
        { ...TASK, title: "a" },
        { ...TASK, title: "b" },
        { ...TASK, title: "c" },
      ],
    });
    const { tasks } = await patch(uid, ["tasks"], {
      tasks: [
        { ...TASK, title: "new" },
        { ...b!, title: "a" },
        { ...a!, title: "b" },
      ],
    });
    expect(tasks.map((task) => [task.title, task.uid === a!.uid ? "a" : task.uid === b!.uid ? "b" : "other"])).toEqual([
      ["new", "other"],
      ["a", "b"],
      ["b", "a"],
    ]);
    await expect(patch(uid, ["tasks"], { tasks: [{ ...TASK, uid: c!.uid }] })).rejects.toThrow(
      refused("suite_invalid", "tasks"),
    );
    await expect(patch(uid, ["tasks"], { tasks: [tasks[0]!, { ...tasks[0]!, title: "twice" }] })).rejects.toThrow(
      refused("suite_invalid", "tasks"),
    );
  });

  test("takes the agent type along with a new agent and refuses a type that does not match", async () => {
    const { uid } = await aSuite();
    const reviewer = world.anAgent(factoryUid, "reviewer");
    await expect(patch(uid, ["factory_agent_type"], { factoryAgentType: "reviewer" })).rejects.toThrow(
      refused("agent_type_mismatch"),
    );
    await expect(
      patch(uid, ["agent_uid", "factory_agent_type"], { agentUid: reviewer, factoryAgentType: "builder" }),
    ).rejects.toThrow(refused("agent_type_mismatch"));
    expect(await patch(uid, ["agent_uid"], { agentUid: reviewer })).toMatchObject({
      agentUid: reviewer,
      factoryAgentType: "reviewer",
    });
  });

  test("is refused for a name that is taken, a blank name and an unknown field", async () => {
    await aSuite({ name: "Other" });
    const { uid } = await aSuite();
    await expect(patch(uid, ["name"], { name: "OTHER" })).rejects.toThrow(refused("suite_name_taken"));
    await expect(patch(uid, ["name"], { name: "" })).rejects.toThrow(refused("suite_invalid", "name"));
    await expect(patch(uid, ["version"])).rejects.toThrow(refused("suite_invalid", "version"));
  });
});

describe("tasks", () => {
  const RICH = {
    ...TASK,
    startingRepoRefs: [{ codeForge: "github", owner: "acme", repo: "shop", ref: "main" }],
    tags: ["x"],
    labels: { size: "s" },
  };

  test("are added at the end; the identical task again returns the existing one and changes nothing", async () => {
    const { uid } = await aSuite({ tasks: [{ ...TASK, title: "First" }] });
    const added = await add(uid, RICH);
    const again = await add(uid, { ...RICH, title: " Fix it ", tags: [" x"] });
    expect([added.created, again.created, again.task]).toEqual([true, false, added.task]);
    expect(await get(uid)).toMatchObject({
      version: 2,
      tasks: [{ title: "First" }, { title: "Fix it", tags: ["x"], labels: { size: "s" } }],
    });
  });

  test.each<[string, TaskInit]>([
    ["prompt", { prompt: "o" }],
    ["criteria", { successCriteria: "o" }],
    ["refs", { startingRepoRefs: [] }],
    ["tags", { tags: [] }],
  ])("with a title that is used by a task with other %s are a conflict", async (_, change) => {
    const { uid } = await aSuite({ tasks: [RICH] });
    await expect(add(uid, { ...RICH, ...change })).rejects.toThrow(refused("task_title_taken"));
    expect((await get(uid)).version).toBe(1);
  });

  test("added with an idempotency key return the first answer again, also after a change or deletion; another body is refused", async () => {
    const { uid } = await aSuite();
    const once = (task: TaskInit) => add(uid, task, { idempotencyKey: "task" });
    const [first, concurrent] = await Promise.all([once(RICH), once(RICH)]);
    expect([first.created, concurrent]).toEqual([true, first]);
    await patchTask(uid, first.task!.uid, ["prompt"], { prompt: "Changed." });
    expect(await once(RICH)).toEqual(first);
    await world.benchmarks.deleteTask({ factoryUid, suiteUid: uid, taskUid: first.task!.uid }, call(OWNER));
    expect(await once(RICH)).toEqual(first);
    expect((await get(uid)).tasks).toEqual([]);
    await expect(once({ ...RICH, title: "Other" })).rejects.toThrow(refused("idempotency_mismatch"));
  });

  test("added many times at once exist once", async () => {
    const { uid } = await aSuite();
    const results = await Promise.all(Array.from({ length: 8 }, () => add(uid)));
    expect(results.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(results.map(({ task }) => task!.uid)).size).toBe(1);
    expect(await get(uid)).toMatchObject({ version: 2, tasks: [{ title: "Fix it" }] });
  });

  test("of different titles added at once are all there, each with its own version", async () => {
    const { uid } = await aSuite();
    await Promise.all(Array.from({ length: 8 }, (_, index) => add(uid, { title: `t${index}` })));
    const suite = await get(uid);
    expect([suite.version, suite.tasks.length]).toEqual([9, 8]);
    expect(await world.rows("SELECT DISTINCT position FROM suite_tasks")).toHaveLength(8);
  });

  test("need a source run that the caller can view", async () => {
    const { uid } = await aSuite();
    const own = world.orchestrator.aRun({ teamUid: TEAM });
    const foreign = world.orchestrator.aRun({ teamUid: OTHER_TEAM });
    await expect(add(uid, { sourceRunUid: own.uid })).resolves.toMatchObject({ task: { sourceRunUid: own.uid } });
    await expect(add(uid, { title: "other", sourceRunUid: foreign.uid })).rejects.toThrow(refused("run_not_found"));
  });

  test("need a source run that the caller can view, even if another task of the suite names it", async () => {
    const run = world.orchestrator.aRun({ teamUid: TEAM });
    const {
      uid,
      tasks: [named, plain],
    } = await aSuite({
      tasks: [
        { ...TASK, sourceRunUid: run.uid },
        { ...TASK, title: "plain" },
      ],
    });
    run.teamUid = OTHER_TEAM;
    const copied = { ...TASK, title: "copied", sourceRunUid: run.uid };
    const source = { sourceRunUid: run.uid };
    for (const attempt of [
      add(uid, copied),
      patchTask(uid, plain!.uid, ["source_run_uid"], source),
      patch(uid, ["tasks"], { tasks: [named!, plain!, copied] }),
      patch(uid, ["tasks"], { tasks: [named!, { ...plain!, ...source }] }),
    ])
      await expect(attempt).rejects.toThrow(refused("run_not_found"));
    const { tasks } = await patch(uid, ["tasks"], { tasks: [{ ...named!, prompt: "New." }, plain!] });
    expect(tasks).toMatchObject([{ prompt: "New.", sourceRunUid: run.uid }, { title: "plain" }]);
    expect(await patchTask(uid, named!.uid, ["prompt"], { prompt: "Newer." })).toMatchObject(source);
  });

  test("do not change omitted fields; masked and unset ones are cleared", async () => {
    const run = world.orchestrator.aRun({ teamUid: TEAM });
    const {
      uid,
      tasks: [task],
    } = await aSuite({ tasks: [{ ...RICH, sourceRunUid: run.uid }] });
    expect(await patchTask(uid, task!.uid, ["prompt"], { prompt: "New." })).toMatchObject({
      prompt: "New.",
      title: "Fix it",
      tags: ["x"],
      sourceRunUid: run.uid,
    });
    const cleared = await patchTask(uid, task!.uid, ["source_run_uid", "starting_repo_refs", "tags"]);
    expect([cleared.sourceRunUid, cleared.startingRepoRefs, cleared.tags, cleared.labels, cleared.uid]).toEqual([
      undefined,
      [],
      [],
      { size: "s" },
      task!.uid,
    ]);
    expect((await get(uid)).version).toBe(3);
  });

  test.each(["title", "prompt", "success_criteria"])("refuse an update that blanks the %s", async (field) => {
    const {
      uid,
      tasks: [task],
    } = await aSuite({ tasks: [TASK] });
    await expect(patchTask(uid, task!.uid, [field], { title: " ", prompt: " ", successCriteria: " " })).rejects.toThrow(
      refused("suite_invalid", field),
    );
    await expect(patchTask(uid, task!.uid, [field])).rejects.toThrow(refused("suite_invalid", field));
  });

  test("cannot take the title of another task", async () => {
    const { uid, tasks } = await aSuite({
      tasks: [
        { ...TASK, title: "a" },
        { ...TASK, title: "b" },
      ],
    });
    await expect(patchTask(uid, tasks[1]!.uid, ["title"], { title: "a" })).rejects.toThrow(refused("task_title_taken"));
  });

  test("can be read and deleted one by one", async () => {
    const {
      uid: suiteUid,
      tasks: [task],
    } = await aSuite({ tasks: [TASK, { ...TASK, title: "b" }] });
    const ref = { factoryUid, suiteUid, taskUid: task!.uid };
    expect((await world.benchmarks.getTask(ref, call(VIEWER))).task).toEqual(task);
    await world.benchmarks.deleteTask(ref, call(OWNER));
    await expect(world.benchmarks.getTask(ref, call(OWNER))).rejects.toThrow(refused("task_not_found"));
    await expect(world.benchmarks.deleteTask(ref, call(OWNER))).rejects.toThrow(refused("task_not_found"));
    expect(await get(suiteUid)).toMatchObject({ version: 2, tasks: [{ title: "b" }] });
  });

  test("are drafted from a run of the factory and not stored", async () => {
    const run = world.orchestrator.aRun({ teamUid: TEAM, factoryUid, title: "Fix the build" });
    const { task } = await world.benchmarks.composeTask({ factoryUid, runUid: run.uid }, call(VIEWER));
    expect(task).toMatchObject({
      uid: "",
      title: "Fix the build",
      prompt: "Fix the build.",
      successCriteria: "",
      sourceRunUid: run.uid,
    });
    run.repositories = [{ owner: "acme", repo: "shop", commit: "a".repeat(40) }];
    const pinned = await world.benchmarks.composeTask({ factoryUid, runUid: run.uid }, call(VIEWER));
    expect(pinned.task!.startingRepoRefs).toMatchObject([{ owner: "acme", repo: "shop", ref: "a".repeat(40) }]);
    const elsewhere = world.orchestrator.aRun({ teamUid: TEAM, factoryUid: newUid() });
    await expect(world.benchmarks.composeTask({ factoryUid, runUid: elsewhere.uid }, call(OWNER))).rejects.toThrow(
      refused("run_not_found"),
    );
    await expect(world.benchmarks.composeTask({ factoryUid, runUid: "run-1" }, call(OWNER))).rejects.toThrow(
      refused("run_not_found"),
    );
  });
});

describe("rights", () => {
  test("a viewer reads and cannot change anything", async () => {
    const {
      uid,
      tasks: [task],
    } = await aSuite({ tasks: [TASK] });
    expect((await get(uid, VIEWER)).name).toBe("Core");
    const ref = { factoryUid, suiteUid: uid };
    for (const attempt of [
      create({ name: "Other" }, "", VIEWER),
      add(uid, { title: "x" }, { caller: VIEWER }),
      world.benchmarks.deleteSuite(ref, call(VIEWER)),
      world.benchmarks.deleteTask({ ...ref, taskUid: task!.uid }, call(VIEWER)),
      world.benchmarks.updateSuite({ suite: { uid, factoryUid } }, call(VIEWER)),
    ])
      await expect(attempt).rejects.toThrow(refused("not_authorized"));
    expect((await get(uid)).version).toBe(1);
  });

  test("another team sees the same 404 as for an absent factory", async () => {
    const {
      uid,
      tasks: [task],
    } = await aSuite({ tasks: [TASK] });
    const [hidden, absent] = [factoryUid, newUid()].map((factory) => {
      const ref = { factoryUid: factory, suiteUid: uid };
      return [
        world.benchmarks.getSuite(ref, call(STRANGER)),
        world.benchmarks.listSuites(ref, call(STRANGER)),
        world.benchmarks.deleteSuite(ref, call(STRANGER)),
        world.benchmarks.addTask({ ...ref, task: TASK }, call(STRANGER)),
        world.benchmarks.getTask({ ...ref, taskUid: task!.uid }, call(STRANGER)),
      ];
    });
    for (const attempt of [...hidden!, ...absent!]) await expect(attempt).rejects.toThrow(refused("factory_not_found"));
    expect((await get(uid)).version).toBe(1);
  });

  test("a suite is not found through another factory of the team", async () => {
    const { uid } = await aSuite();
    const ref = { factoryUid: world.aFactory(), suiteUid: uid };
    await expect(world.benchmarks.getSuite(ref, call(OWNER))).rejects.toThrow(refused("suite_not_found"));
    await expect(world.benchmarks.getSuite({ factoryUid, suiteUid: "core" }, call(OWNER))).rejects.toThrow(
      refused("suite_not_found"),
    );
  });

  test("the token of a run reads no suite: a trial must not see its success criteria", async () => {
    const { uid } = await aSuite({ tasks: [TASK] });
    const run = {
      ...OWNER,
      principal: { type: "agent", uid: newUid() },
      run: { runUid: newUid(), rootRunUid: newUid(), executionId: "1", attempt: 1 },
    } as typeof OWNER;
    await expect(get(uid, run)).rejects.toThrow(refused("factory_not_found"));
    await expect(world.benchmarks.listSuites({ factoryUid }, call(run))).rejects.toThrow(refused("factory_not_found"));
  });
});
