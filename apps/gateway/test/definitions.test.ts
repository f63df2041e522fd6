import type { JsonObject } from "@bufbuild/protobuf";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { serviceCaller } from "@millwright/caller";
import { MODEL_SECRETS } from "@millwright/contracts";
import { as, newUid, runnerUidOf, type TeamUid } from "@millwright/ids";
import { call as on } from "@millwright/rpc";
import { aCaller, domainError, eventually } from "@millwright/testing";
import { IdentityDb } from "../src/identity/store/identity-db.ts";
import { knownAgent } from "../src/identity/rpc/known-agent.ts";
import { APP_KEY, openGateway, type TestGateway } from "./support/gateway.ts";

let g: TestGateway;
let team: string;
let factory: string;
beforeAll(async () => {
  g = await openGateway();
  team = (await g.api.call("GET", "/api/v1/whoami")).body.teams[0].uid;
  await call("PUT", `/team/${team}/secrets/TOKEN`, { value: "v" });
});
afterAll(() => g.close());
beforeEach(() => {
  factory = newUid();
});

const call = (method: string, path: string, body?: unknown, key: string = APP_KEY) =>
  g.api.call(method, `/api/v1${path}`, { key, ...(body === undefined ? {} : { body }) });
const asFactories = () => on(serviceCaller("factories", "r"));
const asOrchestrator = () => on(serviceCaller("orchestrator", "r"));
const foreman = { name: "lead", agent_type: "FOREMAN", prompt: "Lead.", skills: [] };
const builder = {
  name: "builder",
  agent_type: "IMPLEMENT",
  prompt: "Build.",
  skills: ["testing"],
  runner: "small",
  secrets: ["TOKEN"],
};
const definition = (agents: object[], rest: object = {}): JsonObject =>
  ({
    factory: {
      name: "F",
      credential_strategy: "EXECUTOR",
      repositories: [{ owner: "o", repo: "r" }],
      secrets: ["TOKEN"],
      mcp_servers: {},
      agent_defaults: { model: "scripted" },
      ...rest,
    },
    agents,
    runners: [],
    skills: [],
  }) as JsonObject;
const stage = (version: number, agents: object[], rest: object = {}, dryRun = false) =>
  g.definitions.stageDefinition(
    { factoryUid: factory, teamUid: team, version: BigInt(version), definition: definition(agents, rest), dryRun },
    asFactories(),
  );
const activate = async (version: number) =>
  Number(
    (await g.definitions.activateDefinition({ factoryUid: factory, version: BigInt(version) }, asFactories()))
      .activeVersion,
  );
const agents = async () =>
  (await call("GET", `/agent/identities?factory_uid=${factory}`)).body.agents as {
    uid: string;
    name: string;
    agent_type: string;
    prompt: string;
    default_runner_uid: string;
  }[];
const plan = async (...asked: Parameters<typeof stage>) =>
  Object.fromEntries((await stage(...asked)).plan.map((item) => [`${item.kind} ${item.name}`, item.action]));

describe("a staged definition", () => {
  test("changes nothing until it is activated; both operations are idempotent", async () => {
    expect(await plan(1, [foreman, builder])).toEqual({
      "factory factory.yaml": "create",
      "agent builder": "create",
      "agent lead": "create",
    });
    await stage(1, [foreman, builder]);
    expect(await agents()).toEqual([]);
    expect([await activate(1), await activate(1)]).toEqual([1, 1]);
    expect((await agents()).map((one) => `${one.name} ${one.default_runner_uid}`).toSorted()).toEqual([
      `builder ${runnerUidOf(factory, "small")}`,
      "lead ",
    ]);
    expect(await plan(2, [foreman, { ...builder, prompt: "Build well." }], {}, true)).toEqual({
      "factory factory.yaml": "unchanged",
      "agent builder": "update",
      "agent lead": "unchanged",
    });
  });
  test("with a missing secret is rejected with a diagnostic, and not stored", async () => {
    const { diagnostics } = await stage(1, [foreman, { ...builder, secrets: ["NONE"] }]);
    expect(diagnostics).toEqual([
      expect.objectContaining({
        path: "agents/builder/agent.md",
        keys: ["secrets", "NONE"],
        code: "FF_INVALID_REFERENCE",
        severity: "error",
      }),
    ]);
    await expect(activate(1)).rejects.toEqual(
      domainError({ kind: "conflict", reason: "stage_missing", retryable: true }),
    );
  });
  test("with reviewers who are not members of the team is rejected with a diagnostic", async () => {
    await g.newTeam("elsewhere");
    const reviewer_emails = ["Owner@localhost", "elsewhere@example.com", "nobody@example.com"];
    const { diagnostics } = await stage(1, [foreman], {
      self_improvement: { reviewer_type: "custom", reviewer_emails },
    });
    expect(diagnostics).toEqual(
      ["elsewhere@example.com", "nobody@example.com"].map((email) =>
        expect.objectContaining({
          path: "factory.yaml",
          keys: ["selfImprovement", "reviewerEmails", email],
          code: "FF_INVALID_REFERENCE",
          message: `The team has no member with the e-mail address "${email}".`,
          severity: "error",
        }),
      ),
    );
  });
  test("with an automation of an unknown agent is rejected with a diagnostic", async () => {
    await stage(1, [foreman, builder]);
    await activate(1);
    const automations = [
      { name: "a", agent: "builder" },
      { name: "b", agent: "nobody" },
    ] as never;
    const { diagnostics } = await g.definitions.stageDefinition(
      { factoryUid: factory, teamUid: team, version: 2n, definition: { ...definition([]), automations }, dryRun: true },
      asFactories(),
    );
    expect(diagnostics).toEqual([
      expect.objectContaining({
        path: "automations/b/automation.md",
        keys: ["agent"],
        code: "FF_INVALID_REFERENCE",
        severity: "error",
        message: 'The factory has no agent named "nobody".',
      }),
    ]);
  });
  test("with a second foreman of the factory is rejected with a diagnostic", async () => {
    g.knownFactories.set(factory, team);
    await call("POST", "/agent/identities", { name: "by hand", agent_type: "FOREMAN", factory_uid: factory });
    const { diagnostics } = await stage(1, [foreman]);
    expect(diagnostics).toEqual([
      expect.objectContaining({
        path: "agents/lead/agent.md",
        code: "FF_FOREMAN_COUNT",
        severity: "error",
        message: expect.stringContaining('"by hand"'),
      }),
    ]);
    const [byHand] = await agents();
    await call("PUT", `/agent/identities/${byHand?.uid}`, { agent_type: "CUSTOM" });
    expect((await stage(1, [foreman])).diagnostics).toEqual([]);
    expect(await activate(1)).toBe(1);
  });
  test("with a foreman blocks the creation of another one until it is activated or discarded", async () => {
    g.knownFactories.set(factory, team);
    const other = (await call("POST", "/agent/identities", { name: "other", factory_uid: factory })).body;
    await stage(1, [foreman]);
    const boss = { name: "boss", agent_type: "FOREMAN", factory_uid: factory };
    expect(await call("POST", "/agent/identities", boss)).toMatchObject({
      status: 400,
      body: { reason: "foreman_exists" },
    });
    expect(await call("PUT", `/agent/identities/${other.uid}`, { agent_type: "FOREMAN" })).toMatchObject({
      status: 400,
      body: { reason: "foreman_exists" },
    });
    const { status, body: lead } = await call("POST", "/agent/identities", { ...boss, name: "lead" });
    expect([status, (await call("PUT", `/agent/identities/${lead.uid}`, { name: "boss" })).status]).toEqual([201, 400]);
    expect(await activate(1)).toBe(1);
    expect((await agents()).map(({ name, agent_type: type }) => `${name} ${type}`).toSorted()).toEqual([
      "lead FOREMAN",
      "other CUSTOM",
    ]);
    // a field that definition files do not have
    await call("PUT", `/agent/identities/${lead.uid}`, { queue_paused: true });
    await stage(2, [{ ...foreman, name: "next" }]);
    await g.definitions.discardDefinition({ factoryUid: factory, version: 2n }, asFactories());
    expect((await call("GET", `/agent/identities/${lead.uid}`)).body).toMatchObject({ queue_paused: true });
  });
  test("that is discarded or only planned cannot be activated", async () => {
    await stage(1, [foreman], {}, true);
    await stage(2, [foreman]);
    await g.definitions.discardDefinition({ factoryUid: factory, version: 2n }, asFactories());
    for (const version of [1, 2])
      await expect(activate(version)).rejects.toEqual(domainError({ reason: "stage_missing" }));
  });
  test("of another team's factory is rejected", async () => {
    await stage(1, [foreman]);
    await activate(1);
    const { uid } = await g.newTeam("thief");
    await expect(
      g.definitions.stageDefinition(
        { factoryUid: factory, teamUid: uid, version: 2n, definition: definition([foreman]), dryRun: false },
        asFactories(),
      ),
    ).rejects.toEqual(domainError({ reason: "factory_team_mismatch" }));
  });
  test("is accepted from the factories service only", async () => {
    const asked = g.definitions.stageDefinition(
      { factoryUid: factory, teamUid: team, version: 1n, definition: {}, dryRun: true },
      on(aCaller()),
    );
    await expect(asked).rejects.toEqual(domainError({ reason: "factory_not_found" }));
  });
});

describe("activation", () => {
  test("never reverts to an earlier version; agents retain their uids; agents without a file are deleted with their keys", async () => {
    await stage(1, [foreman, builder]);
    await activate(1);
    const before = new Map((await agents()).map(({ name, uid }) => [name, uid]));
    const { body: issued } = await call("POST", `/team/${team}/keys`, { name: "k", agent_uid: before.get("builder") });
    await stage(3, [{ ...foreman, prompt: "Lead on." }]);
    await stage(2, [foreman, builder]);
    expect(await activate(3)).toBe(3);
    expect(await activate(2)).toBe(3);
    expect(await agents()).toEqual([expect.objectContaining({ uid: before.get("lead"), prompt: "Lead on." })]);
    expect((await call("GET", "/whoami", undefined, issued.api_key)).status).toBe(401);
  });
  test("can make another agent the foreman", async () => {
    await stage(1, [foreman, builder]);
    await activate(1);
    await stage(2, [
      { ...foreman, agent_type: "CUSTOM" },
      { ...builder, agent_type: "FOREMAN" },
    ]);
    await activate(2);
    expect(
      await g.identityOf("factories").findForeman({ teamUid: team, factoryUid: factory }, asFactories()),
    ).toMatchObject({ agentName: "builder", definitionVersion: 2n });
  });
  test("retains a credential strategy that the file no longer sets", async () => {
    await stage(1, [{ ...foreman, credential_strategy: "CREATOR" }]);
    await activate(1);
    await stage(2, [{ ...foreman, prompt: "Changed." }]);
    await activate(2);
    expect(await agents()).toEqual([expect.objectContaining({ prompt: "Changed.", credential_strategy: "CREATOR" })]);
  });
  test("is also applied from the feed of factories, exactly once", async () => {
    await stage(1, [foreman, builder]);
    for (let i = 0; i < 2; i++)
      await g.publish({
        type: "millwright.definition.activated.v1",
        entity: "definition",
        entityUid: factory,
        teamUid: team,
        payload: { factory_uid: factory, version: 1 },
      });
    await eventually(async () => (await agents()).length === 2);
    const { rows } = await g.database.sql.query("SELECT 1 FROM stream.dead_lettered_events");
    expect(rows).toEqual([]);
  });
  test("of one team is independent of another team's agents of the same factory uid", async () => {
    const { uid } = await g.newTeam("namesake");
    await g.database.sql.query(
      `INSERT INTO agents (uid, team_uid, factory_uid, name, agent_type) VALUES ($1, $2, $3, 'lead', 'FOREMAN')`,
      [newUid(), uid, factory],
    );
    await stage(1, [foreman]);
    expect(await activate(1)).toBe(1);
  });
});

describe("file-managed agents", () => {
  test("can be changed in their files only", async () => {
    await stage(1, [foreman]);
    await activate(1);
    const path = `/agent/identities/${(await agents())[0]?.uid}`;
    for (const body of [{ prompt: "mine" }, { secrets_append: [{ name: "TOKEN" }] }])
      expect(await call("PUT", path, body)).toMatchObject({
        status: 409,
        body: { reason: "agent_file_managed", retryable: false },
      });
    expect(await call("PUT", path, { credential_strategy: "" })).toMatchObject({
      status: 400,
      body: { reason: "agent_file_managed" },
    });
    expect(await call("DELETE", path)).toMatchObject({ status: 400, body: { reason: "agent_file_managed" } });
  });
  test("are deleted with their factory", async () => {
    await stage(1, [foreman, builder]);
    await activate(1);
    await g.publish({ type: "millwright.factory.deleted.v1", entity: "factory", entityUid: factory, teamUid: team });
    await eventually(async () => (await agents()).length === 0);
    expect(
      (await g.database.sql.query("SELECT 1 FROM factory_layers WHERE factory_uid = $1", [factory])).rowCount,
    ).toBe(0);
  });
});

describe("the configuration of runs", () => {
  test("an agent's level, its factory's and its team's, with versions; by uid and by name", async () => {
    await stage(4, [foreman, builder], { mcp_servers: { docs: { warp_id: "d" } } });
    await activate(4);
    const identity = g.identityOf("orchestrator");
    const resolved = await identity.resolveAgent(
      { teamUid: team, agentUid: "", factoryUid: factory, agentName: "builder" },
      asOrchestrator(),
    );
    expect(resolved).toMatchObject({
      agentName: "builder",
      agentType: "IMPLEMENT",
      factoryUid: factory,
      definitionVersion: 4n,
      siblingAgents: ["lead"],
    });
    expect(resolved.layers.map(({ source, version, config }) => [source, version, config])).toEqual([
      [
        "agent",
        1n,
        { name: "builder", prompt: "Build.", runner: "small", skills: ["testing"], secrets: [{ name: "TOKEN" }] },
      ],
      [
        "factory",
        4n,
        {
          model_id: "scripted",
          credential_strategy: "EXECUTOR",
          factory_secrets: [{ name: "TOKEN" }],
          factory_mcp_servers: { docs: { warp_id: "d" } },
          repositories: [{ owner: "o", repo: "r" }],
        },
      ],
      ["team", 1n, {}],
    ]);
    expect(
      (await identity.resolveAgent({ teamUid: team, agentUid: resolved.agentUid }, asOrchestrator())).layers,
    ).toEqual(resolved.layers);
    expect(
      (await identity.resolveAgent({ teamUid: team }, asOrchestrator())).layers.map(({ source }) => source),
    ).toEqual(["team"]);
    for (const missing of [
      { agentUid: newUid() },
      { agentUid: "nonsense" },
      { factoryUid: factory, agentName: "nobody" },
      { agentName: "builder" },
    ])
      await expect(identity.resolveAgent({ teamUid: team, ...missing }, asOrchestrator())).rejects.toEqual(
        domainError({ reason: "agent_not_found" }),
      );
    await expect(identity.resolveAgent({ teamUid: team, agentUid: resolved.agentUid }, on(aCaller()))).rejects.toEqual(
      domainError({ reason: "agent_not_found" }),
    );
  });
  test("is sent with a new run to members, unless the agent is unknown or disabled", async () => {
    await stage(5, [foreman, builder]);
    await activate(5);
    const { lookups } = new IdentityDb(g.database);
    const member = aCaller({ teams: [{ teamUid: as<TeamUid>(team), verbs: ["run.create"] }] });
    const byName = { teamUid: team, factoryUid: factory, agentName: "builder" };
    const { agentUid } = await g.identityOf("orchestrator").resolveAgent(byName, asOrchestrator());
    const askedSecrets = [...MODEL_SECRETS];
    for (const query of [
      { teamUid: team, agentUid },
      { teamUid: team, agentUid: "" },
    ])
      expect(await knownAgent(lookups, member, { ...query, agentUid: query.agentUid || undefined })).toMatchObject({
        query: { ...query, askedSecrets },
        agent: await g.identityOf("orchestrator").resolveAgent({ ...query, askedSecrets }, asOrchestrator()),
      });
    expect(await knownAgent(lookups, aCaller(), { teamUid: team, agentUid })).toBeUndefined();
    for (const unknown of [newUid(), "nonsense"])
      expect(await knownAgent(lookups, member, { teamUid: team, agentUid: unknown })).toBeUndefined();
    await g.database.sql.query("UPDATE agents SET enabled = false WHERE uid = $1", [agentUid]);
    expect(await knownAgent(lookups, member, { teamUid: team, agentUid })).toBeUndefined();
  });
  test("a factory without a foreman returns foreman_missing", async () => {
    const asked = g.identityOf("factories").findForeman({ teamUid: team, factoryUid: factory }, asFactories());
    await expect(asked).rejects.toEqual(domainError({ kind: "conflict", reason: "foreman_missing", retryable: false }));
  });
  test("a third-party harness retains its model and its sign-in secret", async () => {
    await stage(1, [
      { ...foreman, harness: { type: "claude", model: "m", auth: { source: "managedSecret", secret_name: "TOKEN" } } },
    ]);
    await activate(1);
    expect(await agents()).toEqual([
      expect.objectContaining({
        harness: { type: "claude", model_id: "m" },
        harness_auth_secrets: { claude_auth_secret_name: "TOKEN" },
      }),
    ]);
  });
});

test("profiles are found by uid and e-mail address, within one's own teams", async () => {
  const me = (await call("GET", "/whoami")).body.principal;
  const agent = (await call("POST", "/agent/identities", { name: "bot" })).body.uid;
  const identity = g.identityOf("orchestrator");
  const found = async (query: object, caller = serviceCaller("orchestrator", "r")) =>
    (await identity.getProfiles(query, on(caller))).profiles.map(({ type, uid }) => [type, uid]);
  expect(await found({ uids: [me.uid, agent, newUid(), "nonsense"] })).toEqual([
    ["user", me.uid],
    ["service_account", agent],
  ]);
  expect(await found({ emails: ["OWNER@localhost"], teamUid: team })).toEqual([["user", me.uid]]);
  expect(await found({ uids: [me.uid, agent], teamUid: newUid() })).toEqual([]);
  expect(await found({ uids: [me.uid, agent] }, aCaller())).toEqual([]);
});

test("every change publishes an event in its transaction", async () => {
  const { uid } = await g.newTeam("fed");
  const { events: all } = await g.feed.read({ after: 0n, limit: 1000, waitMs: 0 }, asFactories());
  expect(all.filter((event) => event.teamUid === uid).map((event) => event.type)).toEqual([
    "millwright.team.created.v1",
    "millwright.member.added.v1",
    "millwright.key.created.v1",
  ]);
  expect(JSON.stringify(all.map((event) => event.payload))).not.toContain("@");
});
