import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import { serveApi } from "./support/api.ts";
import { APP_KEY, openGateway, type TestGateway } from "./support/gateway.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

let g: TestGateway;
beforeAll(async () => void (g = await openGateway()));
afterAll(() => g.close());

const OWN = { origin: "https://mill.example" };
const signIn = (key: string, headers: Record<string, string> = OWN) =>
  g.api.call("POST", "/session", { key: null, headers, body: { key } });
const setCookie = ({ headers }: { headers: Headers }) => headers.get("set-cookie")!.split(";")[0]!;
const cookieOf = async (key = APP_KEY) => setCookie(await signIn(key));
const whoAmI = (headers: Record<string, string>) => g.api.call("GET", "/api/v1/whoami", { key: null, headers });
const createTeam = (headers: Record<string, string>, name: string) =>
  g.api.call("POST", "/api/v1/team", { key: null, headers, body: { name, owner_email: `${name}@example.com` } });

describe("signing in with a key", () => {
  test("sets a cookie that scripts and other sites cannot use and that does not contain the key", async () => {
    const { status, headers } = await signIn(APP_KEY);
    expect(status).toBe(204);
    expect(headers.get("set-cookie")).toMatch(
      /^__Host-millwright_session=[\w.-]+; Path=\/; Max-Age=86400; HttpOnly; SameSite=Strict; Secure$/,
    );
    expect(headers.get("set-cookie")).not.toContain(APP_KEY);
  });
  test("replaces the session of the browser: the cookie from before is worth nothing", async () => {
    const before = await cookieOf();
    const after = setCookie(await signIn(APP_KEY, { ...OWN, cookie: before }));
    expect([(await whoAmI({ cookie: before })).status, (await whoAmI({ cookie: after })).status]).toEqual([401, 200]);
  });
  test("returns 401 and no cookie for a key that is not valid", async () => {
    const { status, headers } = await signIn("mw_wrong");
    expect([status, headers.get("set-cookie")]).toEqual([401, null]);
  });
  test.each([
    ["another site", { origin: "https://evil.example" }],
    ["no origin", {}],
    ["another site by fetch metadata", { ...OWN, "sec-fetch-site": "cross-site" }],
  ])("is refused from a page of %s", async (_, headers) => {
    const { status, body } = await signIn(APP_KEY, headers);
    expect([status, body.reason]).toEqual([403, "cross_site_request"]);
  });
});

describe("a session", () => {
  test("authenticates the API as the key does", async () => {
    const { status, body } = await whoAmI({ cookie: await cookieOf() });
    expect([status, body.principal.type]).toEqual([200, "user"]);
  });
  test("writes from pages of this server only", async () => {
    const cookie = await cookieOf();
    expect((await createTeam({ cookie, ...OWN }, "own-page")).status).toBe(201);
    expect((await createTeam({ cookie, "sec-fetch-site": "same-origin" }, "own-page-2")).status).toBe(201);
    const foreign: Record<string, string>[] = [
      {},
      { origin: "null" },
      { origin: "https://evil.example" },
      { "sec-fetch-site": "same-site" },
    ];
    for (const headers of foreign)
      expect((await createTeam({ cookie, ...headers }, "other-page")).body).toMatchObject({
        status: 403,
        reason: "cross_site_request",
      });
  });
  test("does not replace an Authorization header that is not valid", async () => {
    expect((await whoAmI({ cookie: await cookieOf(), authorization: "Bearer mw_wrong" })).status).toBe(401);
  });
  test("ends when its key is revoked, and is not accepted when it was changed", async () => {
    const team = await g.newTeam("revoked");
    const cookie = await cookieOf(team.key);
    const { body } = await g.api.call("GET", `/api/v1/team/${team.uid}/keys`, { key: team.key });
    await g.api.call("DELETE", `/api/v1/team/${team.uid}/keys/${body.keys[0].uid}`, { key: team.key });
    expect((await whoAmI({ cookie })).status).toBe(401);
    expect((await whoAmI({ cookie: `${(await cookieOf()).slice(0, -2)}xx` })).body.reason).toBe("credential_missing");
  });
  test("ends after 12 hours without use", async () => {
    const [used, unused] = [await cookieOf(), await cookieOf()];
    g.clock.advance(11 * HOUR);
    expect((await whoAmI({ cookie: used })).status).toBe(200);
    g.clock.advance(HOUR);
    expect((await whoAmI({ cookie: used })).status).toBe(200);
    expect((await whoAmI({ cookie: unused })).body.reason).toBe("session_ended");
  });
  test("ends after 24 hours, even if it is used", async () => {
    const cookie = await cookieOf();
    for (let hours = 0; hours < 23; hours += 1) {
      expect((await whoAmI({ cookie })).status).toBe(200);
      g.clock.advance(HOUR);
    }
    g.clock.advance(HOUR);
    expect((await whoAmI({ cookie })).body.reason).toBe("session_ended");
  });
  test("gets a new token every hour, once, with the remaining lifetime", async () => {
    const first = await cookieOf();
    expect((await whoAmI({ cookie: first })).headers.get("set-cookie")).toBeNull();
    g.clock.advance(HOUR);
    const answers = await Promise.all([1, 2, 3].map(() => whoAmI({ cookie: first })));
    const renewed = answers.filter(({ headers }) => headers.has("set-cookie"));
    expect([answers.map(({ status }) => status), renewed.length]).toEqual([[200, 200, 200], 1]);
    expect(renewed[0]!.headers.get("set-cookie")).toContain("; Max-Age=82800; HttpOnly; SameSite=Strict; Secure");
    const second = setCookie(renewed[0]!);
    expect(second).not.toBe(first);
    expect((await whoAmI({ cookie: second })).headers.get("set-cookie")).toBeNull();
  });
  test("accepts the token from before until the new one has been used for a minute", async () => {
    const first = await cookieOf();
    g.clock.advance(HOUR);
    const second = setCookie(await whoAmI({ cookie: first }));
    g.clock.advance(2 * MINUTE); // the response with the new token may have been lost
    expect((await whoAmI({ cookie: first })).status).toBe(200);
    g.clock.advance(2 * MINUTE);
    expect((await whoAmI({ cookie: second })).status).toBe(200);
    expect((await whoAmI({ cookie: first })).status).toBe(200);
    g.clock.advance(2 * MINUTE);
    expect((await whoAmI({ cookie: first })).body.reason).toBe("session_ended");
    expect((await whoAmI({ cookie: second })).status).toBe(200);
  });
  test("continues with a new token if the response with the last one was lost", async () => {
    const first = await cookieOf();
    g.clock.advance(HOUR);
    const lost = setCookie(await whoAmI({ cookie: first }));
    g.clock.advance(HOUR);
    const third = setCookie(await whoAmI({ cookie: first }));
    expect((await whoAmI({ cookie: third })).status).toBe(200);
    expect((await whoAmI({ cookie: lost })).body.reason).toBe("session_ended");
  });
  test("is stored as a hash only", async () => {
    const cookie = await cookieOf();
    const { rows } = await g.database.sql.query("SELECT sessions::text AS row FROM sessions");
    expect(rows.map(({ row }) => row).join()).not.toMatch(/mwb_/);
    expect(cookie).not.toMatch(/mwb_/);
  });
  test("is not accepted as a bearer credential of a script, nor in the cookie without the seal", async () => {
    expect((await whoAmI({ cookie: `__Host-millwright_session=mwb_${"x".repeat(43)}` })).body.reason).toBe(
      "credential_missing",
    );
    expect((await whoAmI({ authorization: `Bearer mwb_${"x".repeat(43)}` })).status).toBe(401);
  });
});

describe("signing out", () => {
  const signOut = (headers: Record<string, string>, query = "") =>
    g.api.call("DELETE", `/session${query}`, { key: null, headers });
  test("ends the session of this browser only, and removes the cookie", async () => {
    const [mine, other] = [await cookieOf(), await cookieOf()];
    const { status, headers } = await signOut({ ...OWN, cookie: mine });
    expect([status, headers.get("set-cookie")]).toEqual([
      204,
      expect.stringMatching(/^__Host-millwright_session=; .*Max-Age=0/),
    ]);
    expect([(await whoAmI({ cookie: mine })).status, (await whoAmI({ cookie: other })).status]).toEqual([401, 200]);
    expect((await signOut(OWN)).status).toBe(204);
  });
  test("everywhere ends the sessions of all keys of the person, on all replicas, and of no one else", async () => {
    const team = await g.newTeam("everywhere");
    const path = `/api/v1/team/${team.uid}/keys`;
    const { body } = await g.api.call("POST", path, { key: team.key, body: { name: "second" } });
    const [first, second] = [await cookieOf(team.key), await cookieOf(body.api_key)];
    const foreign = await cookieOf();
    const replica = await g.compose();
    const other = await serveApi({ listener: replica.requestListener, document: replica.openApi });
    const onReplica = () => other.call("GET", "/api/v1/whoami", { key: null, headers: { cookie: second } });
    expect((await onReplica()).status).toBe(200);
    expect((await signOut({ ...OWN, cookie: first }, "?everywhere=true")).status).toBe(204);
    expect([(await whoAmI({ cookie: first })).status, (await onReplica()).status]).toEqual([401, 401]);
    expect((await whoAmI({ cookie: foreign })).status).toBe(200);
    expect((await g.api.call("GET", "/api/v1/whoami", { key: team.key })).status).toBe(200); // keys are not sessions
    await other.close();
    await replica.stop();
  });
  test("everywhere ends the sessions of the same agent's key only", async () => {
    const team = await g.newTeam("agents");
    const agent = await g.api.call("POST", "/api/v1/agent/identities", {
      key: team.key,
      body: { name: "bot" },
      headers: { "x-service-team-uid": team.uid },
    });
    const { body } = await g.api.call("POST", `/api/v1/team/${team.uid}/keys`, {
      key: team.key,
      body: { name: "bot", agent_uid: agent.body.uid },
    });
    const [bot, person] = [await cookieOf(body.api_key), await cookieOf(team.key)];
    await signOut({ ...OWN, cookie: bot }, "?everywhere=true");
    expect([(await whoAmI({ cookie: bot })).status, (await whoAmI({ cookie: person })).status]).toEqual([401, 200]);
  });
  test.each([
    ["another site", { origin: "https://evil.example" }],
    ["another site by fetch metadata", { ...OWN, "sec-fetch-site": "cross-site" }],
    ["another host of the same site", { "sec-fetch-site": "same-site" }],
    ["no origin", {}],
  ])("is refused from %s, and the session continues", async (_, headers) => {
    const cookie = await cookieOf();
    for (const query of ["", "?everywhere=true"])
      expect((await signOut({ ...(headers as Record<string, string>), cookie }, query)).body).toMatchObject({
        status: 403,
        reason: "cross_site_request",
      });
    expect((await whoAmI({ cookie })).status).toBe(200);
  });
});

test("sessions that have ended are deleted when another one starts", async () => {
  await cookieOf();
  g.clock.advance(25 * HOUR);
  await cookieOf();
  const { rows } = await g.database.sql.query("SELECT count(*)::int AS count FROM sessions");
  expect(rows).toEqual([{ count: 1 }]);
});

describe("the audit log of a team", () => {
  const sessionsIn = async (team: { uid: string; key: string }) => {
    const { body } = await g.api.call("GET", `/api/v1/team/${team.uid}/audit`, { key: team.key });
    return body.entries
      .filter(({ entity }: any) => entity === "session")
      .map(({ type, actor, payload, request_id: requestId }: any) => ({
        what: type.split(".")[2],
        actor: actor.type,
        payload,
        hasRequest: requestId !== "",
      }));
  };
  const entry = (what: string, payload: object) => ({ what, actor: "user", payload, hasRequest: true });

  test("has sign-ins and sign-outs of its members, and none of other teams", async () => {
    const [team, other] = [await g.newTeam("signing-in"), await g.newTeam("not-signing-in")];
    const [first] = [await cookieOf(team.key), await cookieOf(team.key)];
    await g.api.call("DELETE", "/session", { key: null, headers: { ...OWN, cookie: first } });
    await g.api.call("DELETE", "/session?everywhere=true", {
      key: null,
      headers: { ...OWN, cookie: await cookieOf(team.key) },
    });
    const started = entry("started", { method: "key" });
    const ended = entry("ended", { everywhere: true });
    await eventually(async () =>
      expect(await sessionsIn(team)).toEqual(
        expect.arrayContaining([started, started, started, entry("ended", { everywhere: false }), ended, ended]),
      ),
    );
    expect(await sessionsIn(team)).toHaveLength(6);
    expect(await sessionsIn(other)).toEqual([]);
  });
});
