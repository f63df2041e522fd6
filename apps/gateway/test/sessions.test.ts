import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { APP_KEY, openGateway, type TestGateway } from "./support/gateway.ts";

let g: TestGateway;
beforeAll(async () => void (g = await openGateway()));
afterAll(() => g.close());

const OWN = { origin: "https://mill.example" };
const signIn = (key: string, headers: Record<string, string> = OWN) =>
  g.api.call("POST", "/session", { key: null, headers, body: { key } });
const cookieOf = async (key = APP_KEY) => (await signIn(key)).headers.get("set-cookie")!.split(";")[0]!;
const whoAmI = (headers: Record<string, string>) => g.api.call("GET", "/api/v1/whoami", { key: null, headers });
const createTeam = (headers: Record<string, string>, name: string) =>
  g.api.call("POST", "/api/v1/team", { key: null, headers, body: { name, owner_email: `${name}@example.com` } });

describe("signing in with a key", () => {
  test("sets a cookie that scripts and other sites cannot use and that does not contain the key", async () => {
    const { status, headers } = await signIn(APP_KEY);
    expect(status).toBe(204);
    expect(headers.get("set-cookie")).toMatch(
      /^millwright_session=[\w.-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure$/,
    );
    expect(headers.get("set-cookie")).not.toContain(APP_KEY);
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
  test("expires after 12 hours, and signing out removes the cookie", async () => {
    const cookie = await cookieOf();
    g.clock.advance(12 * 3_600_000);
    expect((await whoAmI({ cookie })).status).toBe(401);
    const { status, headers } = await g.api.call("DELETE", "/session", { key: null, headers: OWN });
    expect([status, headers.get("set-cookie")]).toEqual([
      204,
      expect.stringMatching(/^millwright_session=; .*Max-Age=0/),
    ]);
  });
});
