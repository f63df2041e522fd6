import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { APP_KEY, openGateway, type TestGateway } from "./support/gateway.ts";

let g: TestGateway;
let team: string;
beforeAll(async () => {
  g = await openGateway();
  team = (await g.api.call("GET", "/api/v1/whoami")).body.teams[0].uid;
  for (const name of ["A", "B"]) await call("PUT", `/team/${team}/secrets/${name}`, { value: "v" });
});
afterAll(() => g.close());

const call = (method: string, path: string, body?: unknown, key: string = APP_KEY) =>
  g.api.call(method, `/api/v1${path}`, { key, ...(body === undefined ? {} : { body }) });
const create = (body: object) => call("POST", "/agent/identities", body);
const put = (uid: string, body: unknown) => call("PUT", `/agent/identities/${uid}`, body);

describe("creating an agent", () => {
  test("requires only a name and returns every required field", async () => {
    const { status, body } = await create({ name: " builder " });
    expect([status, body]).toEqual([
      201,
      {
        uid: expect.any(String),
        name: "builder",
        available: true,
        created_at: "2026-11-20T10:00:00.000Z",
        updated_at: "2026-11-20T10:00:00.000Z",
        agent_type: "CUSTOM",
        description: "",
        prompt: "",
        factory_uid: null,
        default_runner_uid: "",
        skills: [],
        secrets: [],
        memory: { auto_memory: { enabled: true }, attached_stores: [] },
        concurrency_limit: 0,
        queue_priority: 0,
        queue_paused: false,
      },
    ]);
    expect((await call("GET", `/agent/identities/${body.uid}`)).body).toEqual(body);
  });
  test("keeps automatic memory as it is when an update sends other memory", async () => {
    const { uid } = (await create({ name: "forgetful", memory: { auto_memory: { enabled: false } } })).body;
    const stores = [{ uid: "s", access: "read_only", instructions: "i" }];
    for (const [sent, attached_stores] of [
      [{ attached_stores: stores }, stores],
      [{ attached_stores: [] }, []],
      [{}, []],
    ])
      expect((await put(uid, { memory: sent })).body.memory).toEqual({
        auto_memory: { enabled: false },
        attached_stores,
      });
  });
  test("stores every published field", async () => {
    const fields = {
      name: "full",
      agent_type: "IMPLEMENT",
      description: "d",
      prompt: "p",
      environment_id: "a".repeat(22),
      default_runner_uid: "r",
      harness: { type: "claude", model_id: "m", reasoning_level: "high" },
      harness_auth_secrets: { claude_auth_secret_name: "A" },
      inference_providers: { aws: { disabled: true } },
      mcp_servers: { one: { url: "https://x.example" }, two: { warp_id: "w" } },
      skills: ["o/r:skills/x/SKILL.md"],
      secrets: [{ name: "A" }],
      memory: {
        auto_memory: { enabled: false },
        attached_stores: [{ uid: "s", access: "read_only", instructions: "i" }],
      },
      credential_strategy: "CREATOR",
      on_behalf_of_enabled: true,
      on_worker_loss: "fail",
      worker_host: " w1 ",
      unknown_member: 1,
      concurrency_limit: 3,
      queue_priority: -2,
      queue_paused: true,
    };
    const { unknown_member: _ignored, ...published } = fields;
    expect((await create(fields)).body).toMatchObject({ ...published, worker_host: "w1", base_harness: "claude" });
  });
  test.each<[string, object, string]>([
    ["no name", {}, "invalid_body"],
    ["an empty name", { name: " " }, "invalid_body"],
    ["a name that is no text", { name: 1 }, "invalid_body"],
    ["an unknown type", { name: "x", agent_type: "BOSS" }, "invalid_body"],
    ["a bad skill", { name: "x", skills: ["nonsense"] }, "invalid_body"],
    ["a skill that cannot be reached", { name: "x", skills: ["o/other:x"] }, "skill_not_found"],
    ["two ways to an MCP server", { name: "x", mcp_servers: { a: { url: "u", command: "c" } } }, "invalid_body"],
    ["a bad environment id", { name: "x", environment_id: "short" }, "invalid_body"],
    ["a negative limit", { name: "x", concurrency_limit: -1 }, "invalid_body"],
    ["a priority out of range", { name: "x", queue_priority: 101 }, "invalid_body"],
    [
      "a third-party harness with a base model",
      { name: "x", harness: { type: "codex" }, base_model: "m" },
      "invalid_agent",
    ],
    [
      "a contradicting base_harness",
      { name: "x", harness: { type: "codex" }, base_harness: "claude" },
      "invalid_agent",
    ],
    ["a secret twice", { name: "x", secrets: [{ name: "A" }, { name: "A" }] }, "invalid_agent"],
    ["an unknown secret", { name: "x", secrets: [{ name: "NONE" }] }, "secret_unknown"],
    ["an unknown factory", { name: "x", factory_uid: newUid() }, "factory_not_in_team"],
    ["a malformed factory", { name: "x", factory_uid: "f" }, "factory_not_in_team"],
    ["an unknown environment", { name: "x", environment_id: "c".repeat(22) }, "environment_not_in_team"],
    [
      "an environment that is only open to the team",
      { name: "x", environment_id: "b".repeat(22) },
      "environment_not_in_team",
    ],
  ])("returns 400 for %s and creates no agent", async (_what, body, reason) => {
    const before = (await call("GET", "/agent/identities")).body;
    expect(await create(body)).toMatchObject({ status: 400, body: { error_code: "invalid_request", reason } });
    expect((await call("GET", "/agent/identities")).body).toEqual(before);
  });
  test("with an Idempotency-Key returns the first answer again, also if its factory was deleted since", async () => {
    const factory = newUid();
    const once = (factory_uid: string) =>
      g.api.call("POST", "/api/v1/agent/identities", {
        key: APP_KEY,
        body: { name: "once", factory_uid },
        headers: { "idempotency-key": "agent" },
      });
    g.knownFactories.set(factory, team);
    const first = await once(factory);
    g.knownFactories.delete(factory);
    const again = await once(factory);
    expect([first.status, again.status, again.body]).toEqual([201, 201, first.body]);
    expect(await once(newUid())).toMatchObject({ status: 409, body: { reason: "idempotency_mismatch" } });
  });
  test("in a team that the caller is not in is a 404 before anything that the body names", async () => {
    const headers = { "x-service-team-uid": newUid() };
    const body = { name: "x", factory_uid: newUid(), environment_id: "c".repeat(22) };
    expect(await g.api.call("POST", "/api/v1/agent/identities", { key: APP_KEY, body, headers })).toMatchObject({
      status: 404,
    });
  });
  test("stores each skill once, with its full spec, as an update does", async () => {
    const { body } = await create({ name: "skilled", skills: ["o/r:x", "o/r:skills/x/SKILL.md"] });
    expect(body.skills).toEqual(["o/r:skills/x/SKILL.md"]);
    expect(await put(body.uid, { skills: ["o/gone:x"] })).toMatchObject({
      status: 400,
      body: { error_code: "invalid_request", reason: "skill_not_found" },
    });
    expect((await put(body.uid, { skills: ["o/r:x"] })).body.skills).toEqual(["o/r:skills/x/SKILL.md"]);
    expect((await put(body.uid, { skills: [] })).body.skills).toEqual([]);
  });
  test("requires unique names and at most one foreman per factory", async () => {
    const [own, foreign] = [newUid(), newUid()];
    g.knownFactories.set(own, team).set(foreign, newUid());
    expect((await create({ name: "f", agent_type: "FOREMAN", factory_uid: own })).status).toBe(201);
    expect(await create({ name: "g", agent_type: "FOREMAN", factory_uid: own })).toMatchObject({
      status: 400,
      body: { reason: "foreman_exists" },
    });
    expect(await create({ name: "f", factory_uid: own })).toMatchObject({
      status: 400,
      body: { reason: "agent_name_taken" },
    });
    expect(await create({ name: "f", factory_uid: foreign })).toMatchObject({
      status: 400,
      body: { reason: "factory_not_in_team" },
    });
    expect(
      (await call("GET", `/agent/identities?factory_uid=${own}`)).body.agents.map(
        (each: { name: string }) => each.name,
      ),
    ).toEqual(["f"]);
    for (const none of [newUid(), "nonsense"])
      expect((await call("GET", `/agent/identities?factory_uid=${none}`)).body).toEqual({ agents: [] });
  });
});

describe("changing an agent", () => {
  test("changes only sent members: null changes nothing, an empty value clears", async () => {
    const { body: before } = await create({
      name: "p",
      prompt: "old",
      worker_host: "w",
      secrets: [{ name: "A" }],
      harness: { type: "claude" },
    });
    g.clock.advance(5);
    const updated_at = g.clock.now().toISOString();
    expect((await put(before.uid, { prompt: "new", description: null })).body).toEqual({
      ...before,
      prompt: "new",
      updated_at,
    });
    const { body: cleared } = await put(before.uid, { worker_host: "", secrets: [], harness: {} });
    expect([cleared.worker_host, cleared.secrets, cleared.harness, cleared.base_harness, cleared.prompt]).toEqual([
      undefined,
      [],
      undefined,
      undefined,
      "new",
    ]);
  });
  test("accepts 0 and false: a limit, a priority and a pause can be reset", async () => {
    const { body: before } = await create({ name: "q", concurrency_limit: 2, queue_priority: 5, queue_paused: true });
    expect(
      (await put(before.uid, { concurrency_limit: null, queue_priority: null, queue_paused: null })).body,
    ).toMatchObject({ concurrency_limit: 2, queue_priority: 5, queue_paused: true });
    expect(
      (await put(before.uid, { concurrency_limit: 0, queue_priority: 0, queue_paused: false })).body,
    ).toMatchObject({ concurrency_limit: 0, queue_priority: 0, queue_paused: false });
  });
  test("adds secrets of secrets_append once each, and rejects the whole list on an error", async () => {
    const { body: before } = await create({ name: "s", secrets: [{ name: "A" }] });
    expect((await put(before.uid, { secrets_append: [{ name: "B" }, { name: "A" }] })).body.secrets).toEqual([
      { name: "A" },
      { name: "B" },
    ]);
    for (const body of [
      { secrets_append: [{ name: "A" }], name: null },
      { secrets_append: [{ name: "A" }], other: 1 },
      { secrets_append: null },
      { secrets_append: [{ name: "A" }, { name: "" }] },
      { secrets_append: [{ name: "A" }, { name: "NONE" }] },
    ])
      expect([body, await put(before.uid, body)]).toMatchObject([body, { status: 400 }]);
    expect((await call("GET", `/agent/identities/${before.uid}`)).body.secrets).toEqual([{ name: "A" }, { name: "B" }]);
  });
  test("returns the problems of a create, and changes nothing", async () => {
    const { body: before } = await create({ name: "unharmed", base_model: "auto" });
    for (const body of [
      { name: "" },
      { environment_id: "c".repeat(22) },
      { harness: { type: "claude" } },
      { secrets: [{ name: "NONE" }] },
      [],
      null,
    ])
      expect([body, await put(before.uid, body)]).toMatchObject([body, { status: 400 }]);
    expect((await call("GET", `/agent/identities/${before.uid}`)).body).toEqual(before);
  });
});

describe("another team", () => {
  test("receives the same bytes as for random ids", async () => {
    const { uid: theirs, key } = await g.newTeam("stranger");
    const agent = (await create({ name: "hidden" })).body.uid;
    const secretKey = (await call("POST", `/team/${team}/keys`, { name: "k" })).body.key.uid;
    const me = (await call("GET", "/whoami")).body.principal.uid;
    const paths = (
      teamUid: string,
      agentUid: string,
      keyUid: string,
      userUid: string,
    ): [string, string, unknown?][] => [
      ["GET", `/team/${teamUid}`],
      ["PATCH", `/team/${teamUid}`, { name: "x" }],
      ["GET", `/team/${teamUid}/members`],
      ["POST", `/team/${teamUid}/members`, { email: "x@example.com" }],
      ["PATCH", `/team/${teamUid}/members/${userUid}`, { role: "viewer" }],
      ["DELETE", `/team/${teamUid}/members/${userUid}`],
      ["GET", `/team/${teamUid}/keys`],
      ["POST", `/team/${teamUid}/keys`, { name: "x" }],
      ["DELETE", `/team/${teamUid}/keys/${keyUid}`],
      ["GET", `/team/${teamUid}/secrets`],
      ["POST", `/team/${teamUid}/secrets`, { name: "A", value: "x" }],
      ["PUT", `/team/${teamUid}/secrets/A`, { value: "x" }],
      ["DELETE", `/team/${teamUid}/secrets/A`],
      ["GET", `/team/${teamUid}/audit`],
      ["GET", `/agent/identities/${agentUid}`],
      ["PUT", `/agent/identities/${agentUid}`, { name: "x" }],
      ["DELETE", `/agent/identities/${agentUid}`],
      ["DELETE", `/team/${theirs}/keys/${keyUid}`],
      ["PATCH", `/team/${theirs}/members/${userUid}`, { role: "viewer" }],
      ["POST", `/team/${theirs}/keys`, { name: "x", agent_uid: agentUid }],
    ];
    const real = paths(team, agent, secretKey, me);
    const random = paths(newUid(), newUid(), newUid(), newUid());
    const plain = ({ instance: _path, trace_id: _trace, ...body }: Record<string, unknown>) => body;
    for (const [i, [method, path, body]] of real.entries()) {
      const [ours, absent] = [
        await call(method, path, body, key),
        await call(method, (random[i] as [string, string])[1], random[i]?.[2], key),
      ];
      expect([method, path, ours.status, plain(ours.body)]).toEqual([method, path, 404, plain(absent.body)]);
    }
    expect((await call("GET", `/agent/identities`, undefined, key)).body).toEqual({ agents: [] });
    expect((await call("GET", `/agent/identities/${agent}`)).body).toMatchObject({ name: "hidden" });
  });
  test("requests without a key get 401 everywhere", async () => {
    for (const [path, operations] of Object.entries(g.gateway.openApi.paths ?? {}))
      for (const [method, operation] of Object.entries(operations as Record<string, { security: unknown[] }>)) {
        if (operation.security.length !== 1) continue;
        for (const id of [newUid(), "nonsense"]) {
          const answer = await g.api.call(method.toUpperCase(), path.replaceAll(/\{\w+\}/g, id), { key: null });
          expect([method, path, answer.status]).toEqual([method, path, 401]);
        }
      }
  });
});
