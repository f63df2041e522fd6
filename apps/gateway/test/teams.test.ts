import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { domainError, eventually } from "@millwright/testing";
import { Vault } from "@millwright/vault";
import { openResponses, respondOnce } from "../src/store/idempotency-store.ts";
import { IdentityDb } from "../src/identity/store/identity-db.ts";
import { issueOwnerKey } from "../src/identity/usecases/issue-owner-key.ts";
import { APP_KEY, NOW, openGateway, type TestGateway } from "./support/gateway.ts";
import { CALLERS } from "./support/people.ts";

let g: TestGateway;
let team: string;
beforeAll(async () => {
  g = await openGateway();
  team = (await g.api.call("GET", "/api/v1/whoami")).body.teams[0].uid;
});
afterAll(() => g.close());

const call = (method: string, path: string, body?: unknown, key: string = APP_KEY) =>
  g.api.call(method, `/api/v1${path}`, { key, ...(body === undefined ? {} : { body }) });

describe("the first start", () => {
  test("creates a team, its owner with the chosen key, and a worker key", async () => {
    expect(g.keys).toEqual({ apiKey: APP_KEY, workerKey: expect.stringMatching(/^mww_/) });
    expect((await call("GET", "/whoami")).body).toMatchObject({
      principal: { type: "user", email: "owner@localhost" },
      platform_admin: true,
      teams: [{ name: "default", role: "owner", permissions: expect.arrayContaining(["team.manage"]) }],
    });
  });
  test("happens once: a second start returns the same worker key and no API key", async () => {
    const again = await g.compose();
    expect(await again.bootstrap()).toEqual({ workerKey: g.keys.workerKey });
    await again.stop();
    expect((await call("GET", "/team")).body.teams).toHaveLength(1);
  });
  test("allows an operator to create another owner key, which is audited and does not affect the first", async () => {
    const key = await issueOwnerKey({ db: new IdentityDb(g.database), clock: g.clock });
    expect((await call("GET", "/whoami", undefined, key)).body).toMatchObject({
      principal: { email: "owner@localhost" },
      platform_admin: true,
    });
    const { uid } = (await call("GET", "/whoami")).body.teams[0];
    expect((await call("GET", `/team/${uid}/keys`, undefined, key)).body.keys.map(({ name }: any) => name)).toEqual(
      expect.arrayContaining(["first key", "owner key"]),
    );
    await eventually(async () =>
      expect((await call("GET", `/team/${uid}/audit`)).body.entries).toContainEqual(
        expect.objectContaining({
          type: "millwright.key.created.v1",
          payload: expect.objectContaining({ name: "owner key" }),
        }),
      ),
    );
  });
});

test("an operator creates a key for a person who lost theirs, with all of the person's rights", async () => {
  const { uid, key } = await g.newTeam("lost");
  const again = await issueOwnerKey({ db: new IdentityDb(g.database), clock: g.clock }, "Lost@Example.com");
  expect((await call("GET", "/whoami", undefined, again)).body).toMatchObject({
    principal: { email: "lost@example.com" },
    platform_admin: false,
    teams: [{ uid }],
    personal_permissions: expect.arrayContaining(["run.view"]),
  });
  expect((await call("GET", "/whoami", undefined, key)).status).toBe(200);
  await expect(issueOwnerKey({ db: new IdentityDb(g.database), clock: g.clock }, "nobody@example.com")).rejects.toThrow(
    "No user of this platform has the e-mail address nobody@example.com.",
  );
});

test("a person whom their only team removed gets a key from the operator, joins by invitation with it, and revokes it in the team", async () => {
  const [{ uid: last, key: owner }, { uid: next, key: inviter }] = [
    await g.newTeam("last-team"),
    await g.newTeam("next-team"),
  ];
  const { body: member } = await call("POST", `/team/${last}/members`, { email: "stray@example.com" }, owner);
  await call("POST", `/team/${last}/keys`, { name: "own" }, member.api_key);
  await call("DELETE", `/team/${last}/members/${member.uid}`, undefined, owner);
  const key = await issueOwnerKey({ db: new IdentityDb(g.database), clock: g.clock }, "Stray@example.com");
  expect((await call("GET", "/whoami", undefined, key)).body).toMatchObject({
    teams: [],
    personal_permissions: expect.arrayContaining(["run.view"]),
  });
  const { body: invitation } = await call("POST", `/team/${next}/invitations`, { email: "stray@example.com" }, inviter);
  expect((await call("POST", `/invitations/${invitation.uid}/accept`, undefined, key)).status).toBe(200);
  expect((await call("GET", "/whoami", undefined, key)).body.teams).toMatchObject([{ uid: next }]);
  const { body: listed } = await call("GET", `/team/${next}/keys`, undefined, key);
  expect(listed.keys).toMatchObject([{ name: "key from the operator" }]);
  expect((await call("DELETE", `/team/${next}/keys/${listed.keys[0].uid}`, undefined, key)).status).toBe(204);
  expect((await call("GET", "/whoami", undefined, key)).status).toBe(401);
});

describe("teams", () => {
  test("are created by platform administrators, with an owner and a key", async () => {
    const { status, body } = await call("POST", "/team", { name: " Blue ", owner_email: "Blue@Example.com" });
    expect([status, body]).toEqual([
      201,
      expect.objectContaining({
        team: expect.objectContaining({
          name: "Blue",
          capabilities: { factory_branches: true, metadata_filter: true },
        }),
      }),
    ]);
    const me = (await call("GET", "/whoami", undefined, body.api_key)).body;
    expect(me).toMatchObject({
      principal: { email: "blue@example.com", display_name: "Blue" },
      platform_admin: false,
      teams: [{ uid: body.team.uid, role: "owner" }],
    });
    expect(await call("POST", "/team", { name: "Green" }, body.api_key)).toMatchObject({
      status: 403,
      body: { error_code: "not_authorized" },
    });
  });
  test.each([[{}], [{ name: "" }], [{ name: "  " }], [{ name: 1 }], [{ name: "x", owner_email: "nobody" }], [[]]])(
    "are not created from %j",
    async (body) => {
      const before = (await g.database.sql.query("SELECT uid FROM teams")).rowCount;
      expect(await call("POST", "/team", body)).toMatchObject({ status: 400, body: { error_code: "invalid_request" } });
      expect((await g.database.sql.query("SELECT uid FROM teams")).rowCount).toBe(before);
    },
  );
  test("changes only the sent members", async () => {
    const before = (await call("GET", `/team/${team}`)).body;
    g.clock.advance(1000);
    expect((await call("PATCH", `/team/${team}`, {})).body).toEqual(before);
    const { body } = await call("PATCH", `/team/${team}`, {
      capabilities: { metadata_filter: false },
      agent_defaults: { model_id: "auto" },
    });
    expect(body).toEqual({
      ...before,
      capabilities: { factory_branches: true, metadata_filter: false },
      agent_defaults: { model_id: "auto" },
      updated_at: "2026-11-20T10:00:01.000Z",
    });
    for (const wrong of [
      { name: null },
      { name: "" },
      { concurrency_limit: -1 },
      { queue_weight: 0 },
      { queue_paused: 1 },
      { capabilities: { metadata_filter: "no" } },
      { agent_defaults: [] },
    ])
      expect(await call("PATCH", `/team/${team}`, wrong)).toMatchObject({ status: 400 });
    expect((await call("GET", `/team/${team}`)).body).toEqual(body);
  });
  test("a team changes its limit and pause; only platform administrators change the weight of teams", async () => {
    const { body } = await call("POST", "/team", { name: "Red", owner_email: "red@example.com" });
    const red = `/team/${body.team.uid}`;
    expect(body.team).toMatchObject({ concurrency_limit: 0, queue_weight: 1, queue_paused: false });
    expect((await call("PATCH", red, { concurrency_limit: 4, queue_paused: true }, body.api_key)).body).toMatchObject({
      concurrency_limit: 4,
      queue_paused: true,
    });
    expect(await call("PATCH", red, { queue_weight: 50 }, body.api_key)).toMatchObject({
      status: 403,
      body: { error_code: "not_authorized" },
    });
    expect((await call("PATCH", red, { queue_weight: 2.5 })).body).toMatchObject({
      queue_weight: 2.5,
      concurrency_limit: 4,
    });
    expect(await call("PATCH", red, { queue_weight: 2, name: "Mine" })).toMatchObject({ status: 404 });
    expect(await call("PATCH", `/team/${newUid()}`, { queue_weight: 2 })).toMatchObject({ status: 404 });
    const { rows } = await g.database.sql.query(
      `SELECT payload FROM (SELECT type, entity_uid, entity_version, payload FROM stream.event_pending UNION SELECT type, entity_uid, entity_version, payload FROM stream.event_log) e
        WHERE type = 'millwright.team.updated.v1' AND entity_uid = $1 ORDER BY entity_version DESC LIMIT 1`,
      [body.team.uid],
    );
    expect(rows).toEqual([
      { payload: { changed: ["queueWeight"], concurrency_limit: 4, queue_weight: 2.5, queue_paused: true } },
    ]);
  });
});

describe("members", () => {
  test("are added, changed and removed by owners, except the last owner", async () => {
    const added = await call("POST", `/team/${team}/members`, { email: "Ada@example.com", role: "viewer" });
    expect(added).toMatchObject({
      status: 201,
      body: { email: "ada@example.com", display_name: "Ada", role: "viewer", api_key: expect.stringMatching(/^mw_/) },
    });
    const member = `/team/${team}/members/${added.body.uid}`;
    expect(await call("POST", `/team/${team}/members`, { email: "ada@example.com" })).toMatchObject({
      status: 409,
      body: { reason: "already_member", retryable: false },
    });
    expect((await call("PATCH", member, { role: "owner" })).body).toMatchObject({ role: "owner" });
    expect(await call("PATCH", member, { role: "king" })).toMatchObject({ status: 400 });
    expect(
      (await call("GET", `/team/${team}/members`)).body.members.map((each: { role: string }) => each.role),
    ).toEqual(["owner", "owner"]);
    expect((await call("PATCH", member, { role: "member" })).status).toBe(200);
    const self = (await call("GET", "/whoami")).body.principal.uid;
    for (const [method, body] of [
      ["DELETE", undefined],
      ["PATCH", { role: "viewer" }],
    ] as const)
      expect(await call(method, `/team/${team}/members/${self}`, body)).toMatchObject({
        status: 409,
        body: { reason: "last_owner" },
      });
    expect((await call("DELETE", member)).status).toBe(204);
    expect(await call("DELETE", member)).toMatchObject({ status: 404, body: { reason: "member_not_found" } });
  });
  test("lose their keys of the team with their membership", async () => {
    const { body: member } = await call("POST", `/team/${team}/members`, { email: "leaver@example.com" });
    expect((await call("GET", "/whoami", undefined, member.api_key)).status).toBe(200);
    await call("DELETE", `/team/${team}/members/${member.uid}`);
    expect((await call("GET", "/whoami", undefined, member.api_key)).status).toBe(401);
  });
  test("with a lower role get 403 inside their own team", async () => {
    const { body: member } = await call("POST", `/team/${team}/members`, { email: "admin@example.com", role: "admin" });
    for (const [method, path, body] of [
      ["PATCH", `/team/${team}`, { name: "x" }],
      ["POST", `/team/${team}/members`, { email: "x@example.com" }],
      ["PATCH", `/team/${team}/members/${member.uid}`, { role: "owner" }],
      ["DELETE", `/team/${team}/members/${member.uid}`, undefined],
      ["GET", `/team/${team}/audit`, undefined],
      ["POST", `/team/${team}/keys`, { name: "w", kind: "worker" }],
    ] as const)
      expect([path, await call(method, path, body, member.api_key)]).toMatchObject([
        path,
        { status: 403, body: { error_code: "not_authorized" } },
      ]);
  });
  test("pages contain every member once, also if members are added concurrently", async () => {
    const { uid, key } = await g.newTeam("walk");
    // all within one millisecond of the test clock
    for (let i = 0; i < 5; i++) await call("POST", `/team/${uid}/members`, { email: `m${i}@example.com` }, key);
    const seen: string[] = [];
    let cursor = "";
    for (let page = 0; page < 10; page++) {
      const { body } = await call("GET", `/team/${uid}/members?limit=2${cursor}`, undefined, key);
      expect(body.members.length).toBeGreaterThan(0);
      seen.push(...body.members.map((each: { email: string }) => each.email));
      g.clock.advance(1);
      if (page < 2) await call("POST", `/team/${uid}/members`, { email: `late${page}@example.com` }, key);
      if (!body.page_info.has_next_page) break;
      cursor = `&cursor=${body.page_info.next_cursor}`;
    }
    expect(seen.toSorted()).toEqual([...new Set(seen)].toSorted());
    expect(seen).toEqual(expect.arrayContaining(["walk@example.com", "m0@example.com", "m4@example.com"]));
    for (const wrong of ["nonsense", cursor.slice(8)]) {
      const list = wrong === "nonsense" ? `/team/${uid}/members` : `/team/${uid}/keys`;
      expect(await call("GET", `${list}?cursor=${wrong}`, undefined, key)).toMatchObject({
        status: 400,
        body: { reason: "invalid_cursor" },
      });
    }
  });
});

describe("idempotency", () => {
  test("a repeated create returns the first response for 24 hours, and 409 for another body", async () => {
    const send = (body: unknown, path = `/team/${team}/keys`) =>
      g.api.call("POST", `/api/v1${path}`, { body, headers: { "idempotency-key": "once" } });
    const first = await send({ name: "once" });
    expect(await send({ name: "once" })).toMatchObject({ status: 201, body: first.body });
    expect(await send({ name: "twice" })).toMatchObject({
      status: 409,
      body: { error_code: "conflict", reason: "idempotency_mismatch", retryable: false },
    });
    expect(await send({ email: "once@example.com" }, `/team/${team}/members`)).toMatchObject({ status: 201 });
    const named = async () => (await g.database.sql.query("SELECT uid FROM api_keys WHERE name = 'once'")).rowCount;
    expect(await named()).toBe(1);
    g.clock.advance(24 * 3_600_000);
    expect((await send({ name: "once" })).body.key.uid).not.toBe(first.body.key.uid);
    expect(await named()).toBe(2);
    const { rows } = await g.database.sql.query<{ response: string }>("SELECT response FROM idempotency_keys");
    expect(rows.some(({ response }) => response.includes("mw_"))).toBe(false);
    g.clock.set(NOW);
  });
  test("concurrent repetitions create one resource", async () => {
    const answers = await Promise.all(
      Array.from({ length: 4 }, () =>
        g.api.call("POST", `/api/v1/team/${team}/keys`, {
          body: { name: "race" },
          headers: { "idempotency-key": "race" },
        }),
      ),
    );
    expect(new Set(answers.map(({ body }) => body.api_key)).size).toBe(1);
    expect((await g.database.sql.query("SELECT uid FROM api_keys WHERE name = 'race'")).rowCount).toBe(1);
  });
  describe("returns stored responses of other services' operations", () => {
    const { member } = CALLERS;
    const once = () =>
      respondOnce({
        sql: g.database.sql,
        responses: openResponses(Vault.fromMasterKey(new Uint8Array(32).fill(9))),
        clock: g.clock,
      });
    const asked = (body = "b") => ({ key: newUid(), operation: "POST /x", bodyHash: body });

    test("for 24 hours, to callers with the same rights, for the same body; errors are not stored", async () => {
      const request = asked();
      await expect(once()(member, request, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
      expect(await once()(member, request, async () => ({ n: 1 }))).toEqual({ n: 1 });
      expect(await once()(member, request, async () => ({ n: 2 }))).toEqual({ n: 1 });
      expect(await once()({ ...member, teams: [] }, request, async () => ({ n: 3 }))).toEqual({ n: 3 });
      await expect(once()(member, { ...request, bodyHash: "other" }, async () => ({ n: 4 }))).rejects.toEqual(
        domainError({ kind: "conflict", reason: "idempotency_mismatch" }),
      );
      g.clock.advance(24 * 3_600_000);
      expect(await once()(member, request, async () => ({ n: 5 }))).toEqual({ n: 5 });
      expect(await once()(member, request, async () => ({ n: 6 }))).toEqual({ n: 5 });
      g.clock.set(NOW);
    });

    test("to concurrent repetitions: the response that was stored first", async () => {
      const request = asked();
      let finish: (answer: string) => void = () => {};
      const begun = Promise.withResolvers<void>();
      const late = once()(
        member,
        request,
        () => new Promise<string>((resolve) => ((finish = resolve), begun.resolve())),
      );
      await begun.promise;
      expect(await once()(member, request, async () => "early")).toBe("early");
      finish("late");
      expect(await late).toBe("early");
    });
  });

  test("a rejected create stores nothing, so its key can be used again", async () => {
    const send = (body: unknown) =>
      g.api.call("POST", `/api/v1/team/${team}/keys`, { body, headers: { "idempotency-key": "refused" } });
    expect((await send({ name: "a", agent_uid: newUid() })).status).toBe(404);
    expect((await send({ name: "b" })).status).toBe(201);
  });
});

test("a repeated create of a team returns the first response, although it made the caller a member", async () => {
  const own = await openGateway();
  const create = () =>
    own.api.call("POST", "/api/v1/team", { key: APP_KEY, body: { name: "Own" }, headers: { "idempotency-key": "k" } });
  const first = await create();
  expect(first.status).toBe(201);
  expect((await create()).body).toEqual(first.body);
  expect((await own.api.call("GET", "/api/v1/team", { key: APP_KEY })).body.teams).toHaveLength(2);
  await own.close();
});
