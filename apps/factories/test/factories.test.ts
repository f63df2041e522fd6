import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { factories } from "@millwright/contracts";
import { EVENT_TABLES_SQL } from "@millwright/events";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { aCaller, domainError, missingTables } from "@millwright/testing";
import { WORK_TABLES_SQL } from "@millwright/work";
import {
  MEMBER,
  NOW,
  OTHER_TEAM,
  OWNER,
  POWERLESS,
  startWorld,
  OTHER_TEAM_OWNER,
  TEAM,
  VIEWER,
  type World,
} from "./setup.ts";

let w: World;
beforeAll(async () => {
  w = await startWorld();
});
afterAll(() => w.stop());

test("the migration contains the tables of events and work", async () => {
  expect(await missingTables(w.t.database.sql, EVENT_TABLES_SQL)).toEqual([]);
  expect(await missingTables(w.t.database.sql, WORK_TABLES_SQL)).toEqual([]);
});

test("a created factory has every member of the record, with its defaults", async () => {
  const factory = await w.aFactory({ name: "Plain" });
  const { factory: read } = await w.factories.getFactory({ uid: factory.uid }, call(VIEWER));
  expect(read).toEqual(factory);
  expect(factory).toMatchObject({
    name: "Plain",
    teamUid: TEAM,
    codeForge: "NONE",
    codeForges: ["NONE"],
    repositories: [],
    credentialStrategy: "EXECUTOR",
    agentDefaults: { default_runner_uid: "", mcp_servers: {}, secrets: [], worker_host: "" },
    scorerDefaults: {},
    creatorUid: OWNER.principal.uid,
    management: "live",
    definitionVersion: 0n,
  });
  for (const absent of [
    "alias",
    "description",
    "defaultEnvironment",
    "defaultModel",
    "scoringDefaultModel",
    "integrations",
    "selfImprovement",
    "foremanAgentUid",
  ] as const) {
    expect(factory[absent]).toBeUndefined();
  }
  expect(Number(factory.createdAt?.seconds) * 1000).toBe(NOW.getTime());
});

describe("what a factory may be", () => {
  test.each([
    ["no name", { name: " " }, "name"],
    ["a long name", { name: "n".repeat(101) }, "name"],
    ["a name of 101 emoji", { name: "🏭".repeat(101) }, "name"],
    ["an alias with a slash", { name: "x", alias: "a/b" }, "alias"],
    ["an alias of 61 characters", { name: "x", alias: "a".repeat(61) }, "alias"],
    ["an unknown strategy", { name: "x", credentialStrategy: "NOBODY" }, "credential_strategy"],
    ["an unknown forge", { name: "x", codeForge: "SVN" }, "code_forge"],
    ["a repository that walks up", { name: "x", repositories: [{ owner: "..", repo: "a" }] }, "repositories"],
    [
      "a repository twice",
      {
        name: "x",
        repositories: [
          { owner: "a", repo: "b" },
          { owner: "A", repo: "B" },
        ],
      },
      "repositories",
    ],
  ])("not %s", async (_what, factory, field) => {
    const refused = w.factories.createFactory({ teamUid: TEAM, factory }, call(OWNER));
    await expect(refused).rejects.toMatchObject({
      kind: "invalid_argument",
      reason: "invalid_factory",
      metadata: { field },
    });
  });

  test("named with 100 characters of two UTF-16 units each, and with 60 in its alias", async () => {
    const [name, alias] = ["🏭".repeat(100), "𝒜".repeat(60)];
    expect(await w.aFactory({ name, alias })).toMatchObject({ name, alias });
  });

  test("not a text with NUL", async () => {
    await expect(w.aFactory({ name: "a\0b" })).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason: "invalid_text" }),
    );
  });
});

describe("aliases", () => {
  test("are unique in a team without regard to case, and free in other teams and after deletion", async () => {
    const first = await w.aFactory({ alias: "Mill.1" });
    await expect(w.aFactory({ alias: "mill.1" })).rejects.toEqual(
      domainError({ kind: "conflict", reason: "alias_taken" }),
    );
    await w.aFactory({ alias: "mill.1" }, OTHER_TEAM_OWNER);
    const second = await w.aFactory();
    const taking = { uid: second.uid, factory: { alias: "MILL.1" }, updateMask: { paths: ["alias"] } };
    await expect(w.factories.updateFactory(taking, call(OWNER))).rejects.toEqual(
      domainError({ reason: "alias_taken" }),
    );
    await w.factories.deleteFactory({ uid: first.uid }, call(OWNER));
    expect((await w.factories.updateFactory(taking, call(OWNER))).factory?.alias).toBe("MILL.1");
  });
});

describe("changing a factory", () => {
  test("replaces the masked fields only; masked and unset is cleared", async () => {
    const factory = await w.aFactory({ alias: "before" });
    w.clock.advance(1_000);
    const { factory: next } = await w.factories.updateFactory(
      {
        uid: factory.uid,
        factory: { description: "d", name: "ignored", repositories: [{ owner: "a", repo: "b", codeForge: "GITLAB" }] },
        updateMask: { paths: ["alias", "description", "repositories"] },
      },
      call(OWNER),
    );
    expect(next).toMatchObject({
      name: "Shop",
      description: "d",
      codeForge: "GITLAB",
      codeForges: ["GITLAB"],
      repositories: [{ owner: "a", repo: "b" }],
    });
    expect(next?.alias).toBeUndefined();
    expect(next?.updatedAt).not.toEqual(factory.updatedAt);
  });

  test("with an empty mask changes nothing, not even the time", async () => {
    const factory = await w.aFactory();
    w.clock.advance(1_000);
    const before = (await w.eventTypes()).length;
    expect(
      (await w.factories.updateFactory({ uid: factory.uid, factory: { name: "x" } }, call(OWNER))).factory,
    ).toEqual(factory);
    expect(await w.eventTypes()).toHaveLength(before);
  });

  test("rejects fields that cannot be set", async () => {
    const factory = await w.aFactory();
    const changing = w.factories.updateFactory(
      { uid: factory.uid, factory: {}, updateMask: { paths: ["management"] } },
      call(OWNER),
    );
    await expect(changing).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "unknown_field" }));
  });
});

describe("settings of a factory's queue", () => {
  test("can be changed wherever it is defined, with an event for every change", async () => {
    const factory = await w.aFactory();
    expect(factory).toMatchObject({ concurrencyLimit: 0, queuePaused: false });
    await w.rows(`UPDATE factories SET management = 'service_files' WHERE uid = '${factory.uid}'`);
    const change = (given: object, ...paths: string[]) =>
      w.factories.updateFactory({ uid: factory.uid, factory: given, updateMask: { paths } }, call(OWNER));
    expect(
      (await change({ concurrencyLimit: 3, queuePaused: true }, "concurrency_limit", "queue_paused")).factory,
    ).toMatchObject({ concurrencyLimit: 3, queuePaused: true });
    await expect(change({ concurrencyLimit: 2, name: "x" }, "concurrency_limit", "name")).rejects.toEqual(
      domainError({ reason: "managed_by_files" }),
    );
    await expect(change({ concurrencyLimit: -1 }, "concurrency_limit")).rejects.toEqual(
      domainError({ reason: "invalid_factory" }),
    );
    const [event] = await w.rows(
      `SELECT payload FROM (SELECT type, entity_uid, payload FROM stream.event_pending UNION SELECT type, entity_uid, payload FROM stream.event_log) e
        WHERE type = 'millwright.factory.updated.v1' AND entity_uid = $1`,
      [factory.uid],
    );
    expect(event).toEqual({ payload: expect.objectContaining({ concurrency_limit: 3, queue_paused: true }) });
  });
});

describe("deleting a factory", () => {
  test("is rejected while it has active runs", async () => {
    const factory = await w.aFactory();
    w.orchestrator.live = 2;
    const deleting = w.factories.deleteFactory({ uid: factory.uid }, call(OWNER));
    await expect(deleting).rejects.toMatchObject({
      kind: "conflict",
      reason: "factory_has_live_runs",
      retryable: false,
      metadata: { live_runs: "2" },
    });
    w.orchestrator.live = 0;
    expect((await w.factories.getFactory({ uid: factory.uid }, call(OWNER))).factory).toEqual(factory);
  });

  test("cancels them if requested by a caller who may cancel them", async () => {
    const factory = await w.aFactory();
    w.orchestrator.live = 2;
    const asked = { uid: factory.uid, cancelRuns: true };
    await expect(
      w.factories.deleteFactory(
        asked,
        call({
          ...OWNER,
          teams: OWNER.teams.map((team) => ({ ...team, verbs: ["factory.view", "factory.manage"] as const })),
        }),
      ),
    ).rejects.toEqual(domainError({ reason: "not_authorized" }));
    expect(w.orchestrator.closedWithRuns).toBe(false);
    await w.factories.deleteFactory(asked, call(OWNER));
    w.orchestrator.live = 0;
    expect(w.orchestrator.closedWithRuns).toBe(true);
    await expect(w.factories.getFactory({ uid: factory.uid }, call(OWNER))).rejects.toEqual(
      domainError({ reason: "factory_not_found" }),
    );
  });

  test("hides it from every read and from a second delete", async () => {
    const factory = await w.aFactory({ name: "Goes away" });
    await w.factories.deleteFactory({ uid: factory.uid }, call(OWNER));
    await expect(w.factories.getFactory({ uid: factory.uid }, call(OWNER))).rejects.toEqual(
      domainError({ reason: "factory_not_found" }),
    );
    await expect(w.factories.deleteFactory({ uid: factory.uid }, call(OWNER))).rejects.toEqual(
      domainError({ reason: "factory_not_found" }),
    );
    expect((await w.factories.listFactories({ search: "Goes away" }, call(OWNER))).factories).toEqual([]);
    expect((await w.eventTypes()).at(-1)).toBe("factory.deleted");
  });
});

describe("one Idempotency-Key", () => {
  const create = (name: string, key: string, caller = OWNER) =>
    w.factories.createFactory({ teamUid: TEAM, factory: { name }, idempotencyKey: key }, call(caller));

  test("creates one factory for any number of repeated and concurrent requests", async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => create("Once", "k1")));
    expect(new Set(answers.map(({ factory }) => factory?.uid)).size).toBe(1);
    expect(await w.rows("SELECT 1 FROM factories WHERE name = 'Once'")).toHaveLength(1);
    expect((await create("Once", "k1")).factory).toEqual(answers[0]?.factory);
  });

  test("with another body is a conflict that must not be retried", async () => {
    await create("First", "k2");
    await expect(create("Second", "k2")).rejects.toEqual(
      domainError({ kind: "conflict", reason: "idempotency_mismatch", retryable: false }),
    );
  });

  test("is another request from another principal, and after a day", async () => {
    const first = await create("Daily", "k3");
    const admin = aCaller({ teams: OWNER.teams });
    expect((await create("Daily", "k3", admin)).factory?.uid).not.toBe(first.factory?.uid);
    w.clock.advance(25 * 3_600_000);
    expect((await create("Daily", "k3")).factory?.uid).not.toBe(first.factory?.uid);
  });
});

describe("who may see and change", () => {
  const everything = (uid: string) =>
    [
      ["getFactory", (c) => w.factories.getFactory({ uid }, call(c))],
      [
        "updateFactory",
        (c) => w.factories.updateFactory({ uid, factory: { name: "x" }, updateMask: { paths: ["name"] } }, call(c)),
      ],
      ["deleteFactory", (c) => w.factories.deleteFactory({ uid }, call(c))],
      ["dispatchRun", (c) => w.factories.dispatchRun({ factoryUid: uid, prompt: "p" }, call(c))],
      ["getSource", (c) => w.factories.getSource({ factoryUid: uid }, call(c))],
      ["putSource", (c) => w.factories.putSource({ factoryUid: uid, source: { kind: "files" } }, call(c))],
      ["checkSource", (c) => w.factories.checkSource({ factoryUid: uid }, call(c))],
      ["applySource", (c) => w.factories.applySource({ factoryUid: uid }, call(c))],
      ["listTasks", (c) => w.tasks.listTasks({ factoryUid: uid }, call(c))],
      ["getTask", (c) => w.tasks.getTask({ factoryUid: uid, taskUid: newUid() }, call(c))],
      ["updateTask", (c) => w.tasks.updateTask({ factoryUid: uid, task: { uid: newUid() } }, call(c))],
      ["getTaskByRun", (c) => w.tasks.getTaskByRun({ factoryUid: uid, runUid: newUid() }, call(c))],
      [
        "getTaskByConversation",
        (c) => w.tasks.getTaskByConversation({ factoryUid: uid, conversationUid: newUid() }, call(c)),
      ],
    ] as [string, (caller: typeof OWNER) => Promise<unknown>][];
  const failure = async (act: Promise<unknown>) =>
    act.then(
      () => undefined,
      ({ kind, reason, message }: Record<string, unknown>) => ({ kind, reason, message }),
    );

  test("another team's factory gets the same response as an unknown one", async () => {
    const { uid } = await w.aFactory();
    const [here, absent, malformed] = [everything(uid), everything(newUid()), everything("nonsense")];
    for (const [index, [name, act]] of here.entries()) {
      const hidden = await failure(act(OTHER_TEAM_OWNER));
      expect({ name, hidden }).toMatchObject({ hidden: { kind: "not_found", reason: "factory_not_found" } });
      expect(await failure(absent[index]![1](OTHER_TEAM_OWNER))).toEqual(hidden);
      expect(await failure(malformed[index]![1](OTHER_TEAM_OWNER))).toEqual(hidden);
      expect(await failure(act(aCaller({ teams: [] })))).toEqual(hidden);
    }
    expect((await w.factories.getFactory({ uid }, call(OWNER))).factory?.name).toBe("Shop");
  });

  test("inside the team a missing permission is reported", async () => {
    const { uid } = await w.aFactory();
    const denied = async (name: string, caller: typeof OWNER) =>
      failure(everything(uid).find(([known]) => known === name)![1](caller));
    const notAuthorized = expect.objectContaining({ kind: "permission_denied", reason: "not_authorized" });
    for (const [name] of everything(uid))
      expect({ name, answer: await denied(name, POWERLESS) }).toEqual({ name, answer: notAuthorized });
    for (const name of ["updateFactory", "deleteFactory", "putSource", "applySource"])
      expect(await denied(name, MEMBER)).toEqual(notAuthorized);
    for (const name of ["dispatchRun", "updateTask"]) expect(await denied(name, VIEWER)).toEqual(notAuthorized);
    await expect(w.aFactory({}, MEMBER)).rejects.toEqual(domainError({ reason: "not_authorized" }));
  });

  test("a factory cannot be created for a team that the caller is not in", async () => {
    for (const teamUid of [OTHER_TEAM, newUid(), "nonsense"]) {
      const creating = w.factories.createFactory({ teamUid, factory: { name: "x" } }, call(OWNER));
      await expect(creating).rejects.toEqual(domainError({ kind: "not_found", reason: "team_not_found" }));
    }
  });
});

describe("the list", () => {
  const lister = aCaller();
  const list = (
    request: Partial<{ teamUid: string; search: string; pageSize: number; pageToken: string }> = {},
    caller = lister,
  ) => w.factories.listFactories(request, call(caller));
  const namesOf = ({ factories: found }: factories.ListFactoriesResponse) => found.map(({ name }) => name);
  beforeAll(async () => {
    for (const name of ["beta", "Alpha", "alpha", "100%", "under_score", "Gamma"])
      await w.aFactory({ name, alias: `${name.replace("%", "")} ${name === "alpha" ? 2 : 1}` }, lister);
  });

  test("is by name without regard to case, then uid, and has a last page", async () => {
    const names: string[] = [];
    let pageToken = "";
    do {
      const page = await list({ pageSize: 2, pageToken });
      expect(page.factories.length).toBeGreaterThan(0);
      names.push(...namesOf(page));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(names).toEqual(["100%", "Alpha", "alpha", "beta", "Gamma", "under_score"]);
  });

  test.each([
    ["%", ["100%"]],
    ["_", ["under_score"]],
    ["ALPHA", ["Alpha", "alpha"]],
    ["a 2", ["alpha"]],
    ["\\", []],
  ])("searching %j is literal, in name or alias", async (search, names) => {
    expect(namesOf(await list({ search }))).toEqual(names);
  });

  test("shows the named or active team only, and nothing for a team one is not in", async () => {
    const both = aCaller({ teams: [...lister.teams, ...OWNER.teams], activeTeamUid: TEAM });
    const teamUid = lister.teams[0]!.teamUid;
    expect(namesOf(await list({ teamUid }, both))).toHaveLength(6);
    expect(namesOf(await list({}, both))).not.toContain("Gamma");
    expect(namesOf(await list({ teamUid: OTHER_TEAM }, both))).toEqual([]);
    expect(namesOf(await list({ teamUid: "nonsense" }, both))).toEqual([]);
    expect(namesOf(await list({}, { ...lister, activeTeamUid: OTHER_TEAM }))).toEqual([]);
  });

  test("rejects a cursor of other filters, and invalid ones", async () => {
    const { nextPageToken } = await list({ pageSize: 1 });
    for (const request of [
      { pageToken: nextPageToken, search: "a" },
      { pageToken: `${nextPageToken}A` },
      { pageToken: "?" },
    ]) {
      await expect(list(request)).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "invalid_cursor" }));
    }
    expect(namesOf(await list({ pageToken: nextPageToken, pageSize: 1 }))).toEqual(["Alpha"]);
  });
});
