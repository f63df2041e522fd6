import { inspect } from "node:util";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { openGateway, type TestGateway } from "./support/gateway.ts";

const OWN = { origin: "https://mill.example" };
let g: TestGateway;
beforeAll(async () => void (g = await openGateway({ hasOwnerKey: false })));
afterAll(() => g.close());

/** Opens another link of the owner. */
const anotherLink = async () => {
  const token = `t${crypto.randomUUID()}`;
  const hash = Buffer.from(await crypto.subtle.digest("SHA-256", Buffer.from(token))).toString("hex");
  await g.database.sql.query("INSERT INTO sign_in_links SELECT $1, uid, $2 FROM users WHERE platform_admin", [
    hash,
    new Date(g.clock.now().getTime() + 30 * 60_000),
  ]);
  return `/session/link/${token}`;
};
const get = (path: string) => g.api.call("GET", path, { key: null });
const post = (path: string, headers: Record<string, string> = OWN) => g.api.call("POST", path, { key: null, headers });

test("the first start creates a link, of which only the hash is stored, and no later one", async () => {
  expect(g.keys.signInToken).toMatch(/^[\w-]{43}$/);
  const { rows } = await g.database.sql.query("SELECT l::text AS row FROM sign_in_links l");
  expect(rows).toHaveLength(1);
  expect(rows[0]!["row"]).not.toContain(g.keys.signInToken);
  expect((await g.gateway.bootstrap()).signInToken).toBeUndefined();
});

test("a link signs the owner in once, when its button is pressed", async () => {
  const path = `/session/link/${g.keys.signInToken}`;
  for (let opened = 0; opened < 2; opened += 1) {
    const { status, body, headers } = await get(path);
    expect([status, headers.get("set-cookie")]).toEqual([200, null]);
    expect(body).toContain("Sign in as Owner");
    expect(body).toContain('<link rel="icon" type="image/svg+xml" href="data:'); // browsers request no /favicon.ico
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
  }
  const { status, headers } = await post(path);
  expect([status, headers.get("location")]).toEqual([303, "/"]);
  const cookie = headers.get("set-cookie")!.split(";")[0]!;
  const { body } = await g.api.call("GET", "/api/v1/whoami", { key: null, headers: { cookie } });
  expect(body).toMatchObject({ platform_admin: true, teams: [{ name: "default", role: "owner" }] });
  for (const again of [await get(path), await post(path)]) {
    expect([again.status, again.headers.get("set-cookie")]).toEqual([404, null]);
    expect(again.body).toContain("used already, or has expired");
  }
});

test("of concurrent uses one succeeds", async () => {
  const path = await anotherLink();
  const statuses = await Promise.all([1, 2, 3, 4].map(async () => (await post(path)).status));
  expect(statuses.toSorted((a, b) => a - b)).toEqual([303, 404, 404, 404]);
});

test("a link expires after 30 minutes", async () => {
  const path = await anotherLink();
  g.clock.advance(30 * 60_000);
  expect([(await get(path)).status, (await post(path)).status]).toEqual([404, 404]);
});

test("a link is not used by a page of another site", async () => {
  const path = await anotherLink();
  const foreign: Record<string, string>[] = [{ origin: "https://evil.example" }, { "sec-fetch-site": "cross-site" }];
  for (const headers of foreign) expect((await post(path, headers)).status).toBe(403);
  expect((await post(path)).status).toBe(303);
});

test("no log has the token of a link", () => {
  expect(inspect(g.log.entries, { depth: 20 })).not.toContain(g.keys.signInToken);
});
