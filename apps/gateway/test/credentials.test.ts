import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { DomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { domainError, eventually } from "@millwright/testing";
import { call as on } from "@millwright/rpc";
import { serviceCaller } from "@millwright/caller";
import { APP_KEY, openGateway, type TestGateway } from "./support/gateway.ts";

let g: TestGateway;
let team: string;
beforeAll(async () => {
  g = await openGateway();
  team = (await g.api.call("GET", "/api/v1/whoami")).body.teams[0].uid;
});
afterAll(() => g.close());

const call = (
  method: string,
  path: string,
  body?: unknown,
  key: string = APP_KEY,
  headers: Record<string, string> = {},
) => g.api.call(method, `/api/v1${path}`, { key, headers, ...(body === undefined ? {} : { body }) });
const whoami = (key: string, headers = {}) => call("GET", "/whoami", undefined, key, headers);
const order = async (body: object, key: string = APP_KEY) =>
  call("POST", `/team/${team}/keys`, { name: "k", ...body }, key);
const anAgent = async () => (await call("POST", "/agent/identities", { name: "bot" })).body.uid as string;
const aMember = async (role: string) => {
  const { body } = await call("POST", `/team/${team}/members`, { email: `${newUid()}@example.com`, role });
  return { uid: body.uid as string, key: body.api_key as string };
};

describe("a key", () => {
  test("is returned once and stored as a hash; lists return its prefix", async () => {
    const { status, body } = await order({ name: "mine" });
    expect([status, body.api_key]).toEqual([201, expect.stringMatching(/^mw_[\w-]{43}$/)]);
    const listed = (await call("GET", `/team/${team}/keys`)).body.keys.find(
      (each: { uid: string }) => each.uid === body.key.uid,
    );
    expect(listed).toEqual({ ...body.key, prefix: body.api_key.slice(0, 10) });
    const stored = JSON.stringify((await g.database.sql.query("SELECT * FROM api_keys")).rows);
    expect([stored.includes(body.api_key), stored.includes(APP_KEY)]).toEqual([false, false]);
  });
  test("is rejected from the first request after its revocation", async () => {
    const { body } = await order({});
    expect((await whoami(body.api_key)).status).toBe(200);
    expect((await call("DELETE", `/team/${team}/keys/${body.key.uid}`)).status).toBe(204);
    expect(await whoami(body.api_key)).toMatchObject({ status: 401, body: { reason: "key_invalid" } });
    expect(await call("DELETE", `/team/${team}/keys/${body.key.uid}`)).toMatchObject({
      status: 404,
      body: { reason: "key_not_found" },
    });
  });
  test("expires to the millisecond", async () => {
    const { body } = await order({ expires_at: new Date(g.clock.now().getTime() + 1000).toISOString() });
    g.clock.advance(999);
    expect((await whoami(body.api_key)).status).toBe(200);
    g.clock.advance(1);
    expect((await whoami(body.api_key)).status).toBe(401);
  });
  test("records its last use to the minute", async () => {
    const { body } = await order({});
    await whoami(body.api_key);
    const used = async () =>
      (await call("GET", `/team/${team}/keys`)).body.keys.find((each: { uid: string }) => each.uid === body.key.uid)
        .last_used_at;
    expect(await used()).toBe(g.clock.now().toISOString());
  });
  test.each([
    [{ name: "" }],
    [{ kind: "other" }],
    [{ scopes: [] }],
    [{ scopes: ["everything"] }],
    [{ expires_at: "2020-01-01" }],
    [{ expires_at: "soon" }],
    [{ agent_uid: "x" }],
    [{ kind: "worker", scopes: ["run.view"] }],
    [{ kind: "worker", all_teams: true }],
  ])("is not created from %j", async (body) =>
    expect(await order(body)).toMatchObject({ status: 400, body: { error_code: "invalid_request" } }),
  );
});

describe("scopes", () => {
  test("limit the role, and a key cannot create a key with more scopes", async () => {
    const { body } = await order({ scopes: ["run.view", "team.manage"] });
    expect((await whoami(body.api_key)).body).toMatchObject({
      platform_admin: false,
      teams: [{ permissions: ["run.view", "team.manage"] }],
    });
    expect(await order({ scopes: ["secret.manage"] }, body.api_key)).toMatchObject({ status: 403 });
    const inherited = await order({}, body.api_key);
    expect(inherited.body.key.scopes).toEqual(["run.view", "team.manage"]);
    expect(await call("GET", `/team/${team}/secrets`, undefined, body.api_key)).toMatchObject({ status: 403 });
  });
  test("limit keys created for agents too, and the stored response of an Idempotency-Key", async () => {
    const { body } = await order({ scopes: ["run.view", "agent.manage"] });
    const agent = await anAgent();
    const made = await order({ agent_uid: agent }, body.api_key);
    expect(made.body.key.scopes).toEqual(["run.view", "agent.manage"]);
    expect(await order({ agent_uid: agent, scopes: ["run.create"] }, body.api_key)).toMatchObject({ status: 403 });
    const once = (key?: string) =>
      call("POST", `/team/${team}/keys`, { name: "once" }, key, { "idempotency-key": "same" });
    const [first, again, narrow] = [await once(), await once(), await once(body.api_key)];
    expect(again.body).toEqual(first.body);
    expect(narrow.body.api_key).not.toBe(first.body.api_key);
  });
  test("and expiry are inherited by keys that a key creates for its owner", async () => {
    const soon = new Date(g.clock.now().getTime() + 60_000).toISOString();
    const { body } = await order({ expires_at: soon });
    expect((await order({}, body.api_key)).body.key.expires_at).toBe(soon);
    expect(await order({ expires_at: "2030-01-01" }, body.api_key)).toMatchObject({ status: 403 });
  });
});

describe("the holder of a key", () => {
  test("a member creates, sees and revokes only own keys", async () => {
    const viewer = await aMember("viewer");
    const own = await order({ name: "own" }, viewer.key);
    expect(own).toMatchObject({ status: 201, body: { key: { user_uid: viewer.uid } } });
    const listed = (await call("GET", `/team/${team}/keys`, undefined, viewer.key)).body.keys;
    expect(new Set(listed.map((each: { user_uid: string }) => each.user_uid))).toEqual(new Set([viewer.uid]));
    const others = (await order({})).body.key.uid;
    expect(await call("DELETE", `/team/${team}/keys/${others}`, undefined, viewer.key)).toMatchObject({ status: 404 });
    expect((await call("DELETE", `/team/${team}/keys/${own.body.key.uid}`, undefined, viewer.key)).status).toBe(204);
    for (const body of [{ user_uid: newUid() }, { agent_uid: newUid() }, { kind: "worker" }])
      expect([body, await order(body, viewer.key)]).toMatchObject([body, { status: 403 }]);
  });
  test("an owner cannot create keys for other people", async () => {
    const { uid: blue, key: blueKey } = await g.newTeam("two-teams");
    const member = await call("POST", `/team/${blue}/members`, { email: "blue-member@example.com" }, blueKey);
    for (const uid of [member.body.uid, (await whoami(APP_KEY)).body.principal.uid, newUid()])
      expect(await call("POST", `/team/${blue}/keys`, { name: "trap", user_uid: uid }, blueKey)).toMatchObject({
        status: 403,
        body: { error_code: "not_authorized" },
      });
  });
  test("an agent has a member's permissions in its team, whatever the team header", async () => {
    const uid = await anAgent();
    const { body } = await order({ agent_uid: uid });
    const me = (await whoami(body.api_key, { "x-service-team-uid": newUid() })).body;
    expect(me).toMatchObject({
      principal: { type: "service_account", uid, display_name: "bot" },
      active_team_uid: team,
      teams: [{ uid: team }],
    });
    expect(me.teams[0].permissions).not.toContain("agent.manage");
    for (const [method, path, sent] of [
      ["POST", "/agent/identities", { name: "x" }],
      ["DELETE", `/agent/identities/${uid}`, undefined],
      ["POST", `/team/${team}/keys`, { name: "x" }],
    ] as const)
      expect([path, await call(method, path, sent, body.api_key)]).toMatchObject([path, { status: 403 }]);
  });
  test("deletes an agent's keys with the agent", async () => {
    const uid = await anAgent();
    const { body } = await order({ agent_uid: uid });
    expect((await call("DELETE", `/agent/identities/${uid}`)).status).toBe(204);
    expect((await whoami(body.api_key)).status).toBe(401);
    expect((await g.database.sql.query("SELECT 1 FROM api_keys WHERE agent_uid = $1", [uid])).rowCount).toBe(0);
  });
  test("a worker key has no team over REST, and the orchestrator receives the team that it serves", async () => {
    const { body } = await order({ kind: "worker" });
    expect(body.api_key).toMatch(/^mww_/);
    expect((await whoami(body.api_key)).body).toMatchObject({ principal: { type: "worker" }, teams: [] });
    expect(await call("GET", `/team/${team}`, undefined, body.api_key)).toMatchObject({ status: 404 });
    const identity = g.identityOf("orchestrator");
    const asked = on(serviceCaller("orchestrator", "r"));
    expect(await identity.authenticateKey({ key: body.api_key }, asked)).toMatchObject({
      principalType: "worker",
      workerTeamUid: team,
      teams: [],
    });
    expect(await identity.authenticateKey({ key: g.keys.workerKey }, asked)).toMatchObject({
      principalType: "worker",
      workerTeamUid: "",
    });
    await expect(identity.authenticateKey({ key: "mw_unknown" }, asked)).rejects.toEqual(
      domainError({ kind: "unauthenticated", reason: "key_invalid" }),
    );
    await expect(
      g.identityOf("factories").authenticateKey({ key: body.api_key }, on(serviceCaller("factories", "r"))),
    ).rejects.toEqual(domainError({ kind: "permission_denied" }));
  });
});

describe("the active team", () => {
  test.each(["x-service-team-uid", "x-warp-team-uid"])(
    "is selected by %s; other teams are like random or malformed ones",
    async (header) => {
      const { uid } = await g.newTeam(`foreign-${header}`);
      for (const value of [uid, newUid(), "nonsense"]) {
        expect((await call("GET", "/agent/identities", undefined, APP_KEY, { [header]: value })).body).toEqual({
          agents: [],
        });
        expect(await call("POST", "/agent/identities", { name: "x" }, APP_KEY, { [header]: value })).toMatchObject({
          status: 404,
          body: { reason: "team_not_found" },
        });
      }
      expect((await whoami(APP_KEY, { [header]: team.toUpperCase() })).body.active_team_uid).toBe(team);
    },
  );
  test("is required to create resources for members of several teams", async () => {
    const { uid, key } = await g.newTeam("several");
    const { email, uid: me } = (await whoami(APP_KEY)).body.principal;
    const { body: invitation } = await call("POST", `/team/${uid}/invitations`, { email }, key);
    await call("POST", `/invitations/${invitation.uid}/accept`);
    expect(await call("POST", "/agent/identities", { name: "x" })).toMatchObject({
      status: 400,
      body: { reason: "team_required" },
    });
    expect(
      (await call("POST", "/agent/identities", { name: "x" }, APP_KEY, { "x-service-team-uid": team })).status,
    ).toBe(201);
    await call("DELETE", `/team/${uid}/members/${me}`, undefined, key);
  });
});

describe("the token of a run", () => {
  const lease = { runUid: newUid(), rootRunUid: newUid(), creatorUid: newUid(), agentUid: newUid(), teamUid: "" };

  test("is valid for its run while its attempt has the lease", async () => {
    g.leases.set("7.2", { ...lease, teamUid: team });
    const token = await g.runToken({ execution: "7", attempt: 2 });
    const me = (await whoami(token)).body;
    expect(me).toMatchObject({
      principal: { type: "service_account", uid: lease.agentUid },
      run_id: lease.runUid,
      teams: [{ uid: team }],
      platform_admin: false,
    });
    for (const verb of ["agent.manage", "team.manage", "schedule.manage"])
      expect(me.teams[0].permissions).not.toContain(verb);
    expect(await call("POST", `/team/${team}/keys`, { name: "x" }, token)).toMatchObject({ status: 403 });
    expect((await call("GET", `/team/${team}/keys`, undefined, token)).body.keys).toEqual([]);
    g.leases.clear();
    expect(await whoami(token)).toMatchObject({ status: 401, body: { reason: "lease_lost" } });
  });
  test("is not sent to the orchestrator if it is forged, expired or malformed", async () => {
    g.leases.set("7.2", { ...lease, teamUid: team });
    const good = await g.runToken({ execution: 7, attempt: 2 });
    const [head, body] = good.split(".");
    for (const bad of [
      await g.runToken({ execution: 7, attempt: 2 }, "past"),
      `${head}.${body}.`,
      `${head}.${body}.${"A".repeat(86)}`,
      "mwr_x",
      await g.runToken({ attempt: 2 }),
    ])
      expect(await whoami(bad)).toMatchObject({ status: 401, body: { reason: "run_token_invalid" } });
    expect((await whoami(good)).status).toBe(200);
  });
});

describe("secrets", () => {
  const secrets = (rest = "") => `/team/${team}/secrets${rest}`;

  test("cannot be read; services receive their values", async () => {
    expect(await call("POST", secrets(), { name: "TOKEN", value: "canary-1" })).toMatchObject({
      status: 201,
      body: { name: "TOKEN", version: 1 },
    });
    expect(await call("POST", secrets(), { name: "TOKEN", value: "canary-2" })).toMatchObject({
      status: 409,
      body: { reason: "secret_exists" },
    });
    expect(await call("PUT", secrets("/TOKEN"), { value: "canary-3" })).toMatchObject({
      status: 200,
      body: { version: 2 },
    });
    expect(await call("PUT", secrets("/OTHER"), { value: "canary-4" })).toMatchObject({
      status: 201,
      body: { version: 1 },
    });
    const listed = (await call("GET", secrets())).body;
    expect(listed.secrets.map((each: { name: string }) => each.name)).toEqual(["OTHER", "TOKEN"]);
    const identity = g.identityOf("orchestrator");
    const asked = on(serviceCaller("orchestrator", "r"));
    expect((await identity.resolveSecrets({ teamUid: team, names: ["TOKEN", "OTHER"] }, asked)).values).toEqual({
      TOKEN: "canary-3",
      OTHER: "canary-4",
    });
    expect(
      (await identity.resolveSecrets({ teamUid: team, names: ["TOKEN"], optionalNames: ["OTHER", "NONE"] }, asked))
        .values,
    ).toEqual({ TOKEN: "canary-3", OTHER: "canary-4" });
    expect(
      (await identity.resolveAgent({ teamUid: team, askedSecrets: ["TOKEN", "NONE"] }, asked)).teamSecrets,
    ).toEqual(["TOKEN"]);
    await expect(identity.resolveSecrets({ teamUid: team, names: ["TOKEN", "NONE"] }, asked)).rejects.toEqual(
      domainError({ reason: "secret_not_found" }),
    );
    await expect(identity.resolveSecrets({ teamUid: newUid(), names: ["TOKEN"] }, asked)).rejects.toEqual(
      domainError({ reason: "secret_not_found" }),
    );
    expect((await call("DELETE", secrets("/OTHER"))).status).toBe(204);
    expect(await call("DELETE", secrets("/OTHER"))).toMatchObject({
      status: 404,
      body: { reason: "secret_not_found" },
    });
  });
  test("reach webhooks that use them, in order, before a change is acknowledged; otherwise the change fails with 500", async () => {
    g.pushed.length = 0;
    const valueOf = async () =>
      (
        await g
          .identityOf("orchestrator")
          .resolveSecrets({ teamUid: team, optionalNames: ["PUSHED"] }, on(serviceCaller("orchestrator", "r")))
      ).values["PUSHED"];
    for (const value of ["one", "two"]) await call("PUT", secrets("/PUSHED"), { value });
    await call("DELETE", secrets("/PUSHED"));
    await call("POST", secrets(), { name: "PUSHED", value: "three" });
    expect(g.pushed.map(({ teamUid, name, value }) => [teamUid, name, value])).toEqual([
      [team, "PUSHED", "one"],
      [team, "PUSHED", "two"],
      [team, "PUSHED", undefined],
      [team, "PUSHED", "three"],
    ]);
    expect(g.pushed.map(({ revision }) => revision).toSorted()).toEqual(g.pushed.map(({ revision }) => revision));
    const seenBefore: unknown[] = [];
    g.whenPushed(async () => void seenBefore.push(await valueOf()));
    await call("PUT", secrets("/PUSHED"), { value: "four" });
    expect([seenBefore, await valueOf()]).toEqual([["three"], "four"]);
    g.whenPushed(async () => {
      throw new DomainError({ kind: "unavailable", reason: "service_unavailable", message: "away" });
    });
    for (const [method, path, body] of [
      ["PUT", secrets("/PUSHED"), { value: "five" }],
      ["DELETE", secrets("/PUSHED"), undefined],
      ["POST", secrets(), { name: "NEVER", value: "x" }],
    ] as const)
      expect(await call(method, path, body)).toMatchObject({ status: 500 });
    g.whenPushed(async () => {});
    expect(await valueOf()).toBe("four");
    expect((await call("GET", secrets())).body.secrets.map((each: { name: string }) => each.name)).not.toContain(
      "NEVER",
    );
    await call("DELETE", secrets("/PUSHED"));
  });
  test("can be replaced and deleted concurrently without a 5xx", async () => {
    const at = secrets("/CONTESTED");
    for (let round = 0; round < 5; round++) {
      await call("PUT", at, { value: "first" });
      const answers = await Promise.all([call("PUT", at, { value: "second" }), call("DELETE", at), call("DELETE", at)]);
      const statuses = answers.map(({ status }) => status);
      expect(statuses.filter((status) => ![200, 201, 204, 404].includes(status))).toEqual([]);
      expect(statuses).toContain(204);
    }
    await call("DELETE", at);
  });
  test.each([
    ["a name with a space", { name: "A B", value: "x" }],
    ["no name", { name: "", value: "x" }],
    ["an empty value", { name: "A", value: "" }],
    ["no value", { name: "A" }],
    ["a number", { name: "A", value: 1 }],
    ["64 Ki characters and one", { name: "A", value: "x".repeat(65_537) }],
  ])("are not created from %s", async (_what, body) =>
    expect(await call("POST", secrets(), body)).toMatchObject({ status: 400 }),
  );
  test("do not appear in responses, events, the audit log, other rows or logs", async () => {
    await call("POST", secrets(), { name: "CANARY", value: "canary-everywhere" });
    await call("POST", secrets(), { name: "CANARY", value: "canary-everywhere" });
    await eventually(
      async () => (await g.database.sql.query("SELECT 1 FROM audit_log WHERE entity = 'secret'")).rowCount > 0,
    );
    const { rows: tables } = await g.database.sql.query<{ name: string }>(
      "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname IN ('public', 'stream')",
    );
    for (const { name } of tables) {
      const { rows } = await g.database.sql.query(`SELECT t::text AS text FROM ${name} t`);
      expect([name, JSON.stringify(rows).includes("canary-")]).toEqual([name, false]);
    }
    expect(JSON.stringify(g.log.entries)).not.toMatch(/canary-|mw_[\w-]{40}/);
  });
});

describe("the audit log", () => {
  test("lists actor, event and request of every change of all services, newest first, in pages", async () => {
    const { uid, key } = await g.newTeam("audited");
    const made = await call("POST", `/team/${uid}/keys`, { name: "k" }, key, { "x-request-id": "audit-me" });
    await g.publish({ type: "millwright.factory.created.v1", entity: "factory", entityUid: newUid(), teamUid: uid });
    await g.publish({ type: "millwright.run.state_changed.v1", entity: "run", entityUid: newUid(), teamUid: uid });
    const entries = await eventually(async () => {
      const { body } = await call("GET", `/team/${uid}/audit`, undefined, key);
      expect(body.entries.map((each: { type: string }) => each.type)).toEqual(
        expect.arrayContaining([
          "millwright.factory.created.v1",
          "millwright.key.created.v1",
          "millwright.team.created.v1",
        ]),
      );
      return body.entries as {
        uid: string;
        type: string;
        source: string;
        request_id: string;
        entity_uid: string;
        actor: object;
      }[];
    });
    expect(entries.find((each) => each.request_id === "audit-me")).toMatchObject({
      type: "millwright.key.created.v1",
      source: "gateway",
      entity_uid: made.body.key.uid,
      actor: { type: "user" },
    });
    expect(entries.some((each) => each.type.includes("state_changed"))).toBe(false);
    const walked: string[] = [];
    for (let cursor = ""; ;) {
      const { body } = await call("GET", `/team/${uid}/audit?limit=2${cursor}`, undefined, key);
      walked.push(...body.entries.map((each: { uid: string }) => each.uid));
      if (!body.page_info.has_next_page) break;
      cursor = `&cursor=${body.page_info.next_cursor}`;
    }
    expect(walked).toEqual(entries.map((each) => each.uid));
  });
});
