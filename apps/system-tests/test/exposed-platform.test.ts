import { afterEach, expect, test } from "@jest/globals";
import { Platform } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { aTeam, teamOf } from "./support/resources.ts";

const METRICS_KEY = "the-key-of-the-scraper";

let platform: Platform;
afterEach(() => platform?.remove());

async function start(env: Readonly<Record<string, string>>): Promise<Client> {
  platform = await Platform.start({ workers: 0, env });
  return connect(platform);
}

/** Connects a code host on the platform's own machine. */
async function connectLoopback(api: Client) {
  const team = await teamOf(api);
  await api.put(`/team/${team}/secrets/HOST_TOKEN`, { value: "a-token-of-a-code-host" });
  return api.call("POST", `/team/${team}/code-hosts`, {
    body: { name: "inside", kind: "github", base_url: platform.url, secret_name: "HOST_TOKEN" },
  });
}

/**
 * All settings that make a platform reachable are tested in libs/outbound/src/setting.test.ts; these two are the usual
 * ones.
 */
test("a platform that listens on every address prints reachable addresses, and denies teams access to its own machine", async () => {
  const api = await start({ HOST: "0.0.0.0" });
  expect(platform.output()).not.toContain("//0.0.0.0");
  const [, docs = ""] = /docs +(\S+)/.exec(platform.output()) ?? [];
  expect((await fetch(docs)).status).toBe(200);
  const { status, body } = await connectLoopback(api);
  expect([status, body.reason]).toEqual([400, "internal_address_refused"]);
});

test("a platform behind a proxy denies teams access to its own machine", async () => {
  const { status, body } = await connectLoopback(await start({ MILLWRIGHT_TRUSTED_PROXIES: "127.0.0.1" }));
  expect([status, body.reason]).toEqual([400, "internal_address_refused"]);
});

test("a platform on the loopback address accepts addresses of its own machine, and serves metrics only with a key", async () => {
  const api = await start({ MILLWRIGHT_METRICS_KEY: METRICS_KEY, MILLWRIGHT_PUBLIC_URL: "http://localhost:8080" });
  expect((await connectLoopback(api)).status).toBe(201);
  const member = await aTeam(api, "others");
  const scrape = (key?: string) =>
    fetch(`${platform.url}/metrics`, key === undefined ? {} : { headers: { authorization: `Bearer ${key}` } });
  for (const [key, status] of [
    [undefined, 401],
    ["unknown", 401],
    [member.key, 403],
    [api.key, 200],
    [METRICS_KEY, 200],
  ] as const) {
    const answer = await scrape(key);
    const text = await answer.text();
    expect({
      key,
      status: answer.status,
      isProblem: answer.headers.get("content-type")?.includes("application/problem+json"),
    }).toEqual({ key, status, isProblem: status !== 200 });
    expect(text.includes("millwright_")).toBe(status === 200);
  }
  expect((await api.call("GET", "/whoami", { key: METRICS_KEY })).status).toBe(401);
});
