import { randomUUID } from "node:crypto";
import { sign as signForGitHub } from "@octokit/webhooks-methods";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Deployment } from "../src/index.ts";
import { connect, type Client } from "./support/client.ts";
import { SLOW_MS, startPlatform } from "./support/deployment.ts";
import { aTeam, teamOf } from "./support/world.ts";

let platform: Deployment;
let api: Client;
let team: string;

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 });
  api = await connect(platform);
  team = await teamOf(api);
}, SLOW_MS);
afterAll(() => platform?.remove());

const ISSUE = JSON.stringify({ action: "opened", issue: { number: 1, title: "Broken", body: "caf\u00e9" }, repository: { full_name: "acme/shop" }, sender: { login: "ada" } });

/** A connection takes 600 deliveries a minute; under fire some are sent again. */
const IDS_OF_ONE = 60;

/** A connection with an open address, and a secret of ours: what is shown once may be lost on the way to us. */
async function connected(kind: "github" | "gitlab", secret: string = randomUUID()) {
  const host = await api.post(`/team/${team}/code-hosts`, { name: randomUUID(), kind, owners: [randomUUID()] });
  const path = `/team/${team}/code-hosts/${host.uid}`;
  const { ingress_url: url } = await api.put(`${path}/webhook`, {});
  await api.post(`${path}/webhook/rotate`, { secret });
  return { path, url: url as string, secret };
}

const github = async (url: string, secret: string, id: string = randomUUID(), body = ISSUE) =>
  api.fetch(url, { method: "POST", headers: { "content-type": "application/json", "x-github-event": "issues", "x-github-delivery": id, "x-hub-signature-256": await signForGitHub(secret, body) }, body });
const gitlab = (url: string, secret: string, key: string) =>
  api.fetch(url, { method: "POST", headers: { "content-type": "application/json", "x-gitlab-event": "Note Hook", "x-gitlab-token": secret, "idempotency-key": key }, body: '{"object_kind":"note"}' });

/** The whole log, newest first. */
async function logOf(path: string): Promise<any[]> {
  const found: any[] = [];
  let query = "limit=100";
  for (;;) {
    const { deliveries, page_info: page } = await api.get(`${path}/webhook/deliveries?${query}`);
    found.push(...deliveries);
    if (!page.has_next_page) return found;
    query = `limit=100&cursor=${encodeURIComponent(page.next_cursor)}`;
  }
}

describe("a code host", () => {
  test("delivers to the address of its connection, which keeps what it sent", async () => {
    const { path, url, secret } = await connected("github");
    const id = randomUUID();
    const told = await github(url, secret, id);
    expect([told.status, JSON.parse(told.text)]).toEqual([202, { delivery_id: id }]);
    const [entry] = await logOf(path);
    expect(entry).toMatchObject({ provider: "github", event: "issues", action: "opened", delivery_id: id });
    const accepted = (await logOf(path)).find(({ outcome }) => outcome === "accepted");
    const read = await api.get(`${path}/webhook/deliveries/${accepted.uid}`);
    expect(read).toMatchObject({ label: "Accepted", size_bytes: Buffer.byteLength(ISSUE), headers: { "x-github-event": "issues", "x-github-delivery": id }, payload: JSON.parse(ISSUE) });
    expect(JSON.stringify(read)).not.toContain(secret);
    expect((await api.get(`${path}/webhook`)).last_delivery_at).toEqual(expect.any(String));
  });
  test("is refused with the old secret as soon as it was changed, and not found once its connection is removed", async () => {
    const { path, url, secret } = await connected("gitlab");
    expect((await gitlab(url, secret, "k1")).status).toBe(202);
    await api.post(`${path}/webhook/rotate`, { secret: "another" });
    expect([(await gitlab(url, secret, "k2")).status, (await gitlab(url, "another", "k2")).status]).toEqual([401, 202]);
    await api.delete(path);
    const [removed, never] = [await gitlab(url, "another", "k3"), await gitlab(`${url.slice(0, -36)}${randomUUID()}`, "another", "k3")];
    expect([removed.status, never.status]).toEqual([404, 404]);
    expect((await api.call("GET", `${path}/webhook`, { isAbsent: true })).status).toBe(404);
  });
  test("of another team is as absent", async () => {
    const { path } = await connected("github");
    const theirs = await aTeam(api, `others-${randomUUID().slice(0, 8)}`);
    const others = await teamOf(theirs);
    for (const asked of [path, path.replace(team, others)]) {
      for (const [method, below] of [["GET", "/webhook"], ["PUT", "/webhook"], ["DELETE", "/webhook"], ["POST", "/webhook/rotate"], ["GET", "/webhook/deliveries"]] as const) {
        const answer = await theirs.call(method, `${asked}${below}`, { isAbsent: true, isHarmless: true });
        expect([method, answer.status]).toEqual([method, 404]);
      }
    }
  });
  test("of copies that come at once one is accepted, each time, and every one that was answered is in the log", async () => {
    for (let left = Number(process.env["MILLWRIGHT_IDENTITIES"] ?? 30); left > 0; left -= IDS_OF_ONE) {
      const { path, url, secret } = await connected("github");
      const ids = Array.from({ length: Math.min(left, IDS_OF_ONE) }, () => randomUUID());
      for (const id of ids) {
        const answers = await Promise.all(Array.from({ length: 4 }, () => github(url, secret, id)));
        expect(answers.map(({ status, text }) => [status, JSON.parse(text).delivery_id])).toEqual(Array(4).fill([202, id]));
      }
      const log = await logOf(path);
      const countOf = (id: string, outcome: string) => log.filter((entry) => entry.delivery_id === id && entry.outcome === outcome).length;
      for (const id of ids) {
        expect([id, countOf(id, "accepted")]).toEqual([id, 1]);
        expect(countOf(id, "duplicate")).toBeGreaterThanOrEqual(3); // more, when an answer was lost and the copy sent again
      }
    }
  });
});
