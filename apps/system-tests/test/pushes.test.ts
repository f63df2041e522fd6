import { createHmac, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { AUTHORITY, eventually, GitServer } from "@millwright/testing";
import type { Deployment } from "@millwright/test-platform";
import { bareRepository, git, pushFiles } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { RUN_TIMEOUT_MS, script } from "./support/runs.ts";
import { aCodeHost, applied, aTeam, definitionFiles, settled, treeOf, type CodeHost } from "./support/resources.ts";

let platform: Deployment;
let api: Client;
let server: GitServer;
let own: string;
let hub: CodeHost;
let lab: CodeHost;
let [bare, url, factory, branch, first]: string[] = [];

/**
 * A repository whose heads are polled once, when they are first tracked. Afterwards only push events report changes.
 */
beforeAll(async () => {
  server = await new GitServer().start();
  own = mkdtempSync(join(tmpdir(), "millwright-authority-"));
  writeFileSync(join(own, "ca.pem"), AUTHORITY);
  platform = await startPlatform({
    workers: 0,
    env: { MILLWRIGHT_BRANCH_POLL_INTERVAL: "10m", MILLWRIGHT_GIT_CA_FILE: join(own, "ca.pem") },
  });
  api = await connect(platform);
  server.root = platform.path("repositories");
  [hub, lab] = [await aCodeHost(api, "github"), await aCodeHost(api, "gitlab")];
});
afterAll(async () => {
  await platform?.remove();
  await server?.stop();
  rmSync(own, { recursive: true, force: true });
});

let count = 0;
beforeEach(async () => {
  const name = `factory-${(count += 1)}`;
  bare = bareRepository(server.root, "acme", name, treeOf(definitionFiles(script("say: First."))));
  url = `${server.url}/acme/${name}.git`;
  first = git(bare, "rev-parse", "main").trim();
  [factory, branch] = await tracked(api);
});

/** Creates a factory with the repository. Returns its id and that of its production branch once the head is known. */
async function tracked(client: Client): Promise<[string, string]> {
  const { uid } = await client.post("/factory", { name: `Works ${count}` });
  await client.put(`/factory/${uid}/source`, { repository_url: url });
  const production = await eventually(
    async () => {
      const [found] = (await client.get(`/factory/${uid}/branches`)).branches;
      return found.registered_head_sha === first && found;
    },
    { timeoutMs: RUN_TIMEOUT_MS },
  );
  return [uid, production.uid];
}

const status = () => api.get(`/factory/${factory}/branches/${branch}`);
/**
 * Applies the branch. Returns the response, after the definition is applied in all services if the request succeeded.
 */
const apply = async () => {
  const response = await api.call("POST", `/factory/${factory}/branches/${branch}/apply`);
  if (response.status === 200) await settled(api, factory!);
  return response;
};
const registered = (sha: string | null) =>
  eventually(
    async () => {
      const now = await status();
      return now.registered_head_sha === sha && now;
    },
    { timeoutMs: RUN_TIMEOUT_MS },
  );

/** Pushes a definition with another foreman script. Returns the new head. */
const push = (say: string, how?: { isForced: boolean }): string =>
  pushFiles(bare!, treeOf(definitionFiles(script(`say: ${say}`))), how);

const NONE = "0".repeat(40);
type Push = { before: string; after: string; ref?: string; of?: string; forced?: boolean };
type SendPush = (push: Push) => Promise<void>;
async function deliver(
  { url: ingress, secret }: CodeHost,
  headers: Record<string, string>,
  payload: object,
): Promise<void> {
  const body = JSON.stringify(payload);
  const signature = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
  const all = {
    "content-type": "application/json",
    ...headers,
    ...(headers["x-github-event"] ? { "x-hub-signature-256": signature } : { "x-gitlab-token": secret }),
  };
  expect((await api.fetch(ingress, { method: "POST", headers: all, body })).status).toBe(202);
}
const github: SendPush = ({ before, after, ref = "refs/heads/main", of = url!, forced = false }) =>
  deliver(
    hub,
    { "x-github-event": "push", "x-github-delivery": randomUUID() },
    {
      ref,
      before,
      after,
      forced,
      created: before === NONE,
      deleted: after === NONE,
      repository: { full_name: new URL(of).pathname.slice(1, -4), clone_url: of },
      sender: { login: "ada" },
    },
  );
const gitlab: SendPush = ({ before, after, ref = "refs/heads/main", of = url! }) =>
  deliver(
    lab,
    { "x-gitlab-event": ref.startsWith("refs/tags/") ? "Tag Push Hook" : "Push Hook", "idempotency-key": randomUUID() },
    {
      object_kind: ref.startsWith("refs/tags/") ? "tag_push" : "push",
      ref,
      before,
      after,
      checkout_sha: after === NONE ? null : after,
      user_username: "ada",
      project: {
        path_with_namespace: new URL(of).pathname.slice(1, -4),
        git_http_url: of,
        web_url: of.replace(/\.git$/, ""),
      },
    },
  );

describe.each([
  ["GitHub", github],
  ["GitLab", gitlab],
] as const)("a push that %s reports", (_host, report) => {
  test("registers the head, which reading does not change and applying activates", async () => {
    expect((await apply()).body).toMatchObject({ freshness: "CURRENT", applied_sha: first });
    const second = push("Second.");
    await report({ before: first!, after: second });
    const response = {
      uid: branch,
      state: "ACTIVE",
      freshness: "STALE",
      registered_head_sha: second,
      applied_sha: first,
      is_serving: true,
    };
    expect(await registered(second)).toMatchObject(response);
    expect(await status()).toMatchObject(response);
    const answers = await Promise.all([apply(), apply()]);
    for (const answer of answers)
      expect(answer).toMatchObject({ status: 200, body: { freshness: "CURRENT", applied_sha: second } });
    expect(await status()).toMatchObject({ freshness: "CURRENT", applied_sha: second, state: "ACTIVE" });
    expect((await api.get(`/factory/${factory}/source`)).active_version).toBe(2);
  });

  test("by force registers the new head, and the old one cannot be applied", async () => {
    await apply();
    const rewritten = push("Rewritten.", { isForced: true });
    await report({ before: first!, after: rewritten, forced: true });
    expect(await registered(rewritten)).toMatchObject({ freshness: "STALE", applied_sha: first });
    expect((await apply()).body).toMatchObject({ freshness: "CURRENT", applied_sha: rewritten });
  });

  test("that deletes the branch leaves the active version, until it is pushed again", async () => {
    await apply();
    git(bare!, "update-ref", "-d", "refs/heads/main");
    await report({ before: first!, after: NONE });
    expect(await registered(null)).toMatchObject({
      state: "ACTIVE",
      freshness: "UNKNOWN",
      is_serving: true,
      last_error: { code: "branch_missing" },
    });
    expect(await apply()).toMatchObject({ status: 409, body: { reason: "branch_head_unknown" } });
    const back = push("Back.");
    await report({ before: NONE, after: back });
    expect(await registered(back)).toMatchObject({ freshness: "STALE", last_error: null });
    expect((await apply()).body).toMatchObject({ applied_sha: back });
  });

  test("of a tag, of another repository or host, or to another team's connection changes nothing", async () => {
    const stranger = await aTeam(api, `strangers-${randomUUID().slice(0, 8)}`);
    const [theirs, theirBranch] = await tracked(stranger);
    const [fake, second] = ["f".repeat(40), push("Second.")];
    await report({ before: first!, after: fake, ref: "refs/tags/main" });
    await report({ before: first!, after: fake, ref: "refs/heads/other" });
    await report({ before: first!, after: fake, of: url!.replace("/factory-", "/other-") });
    await report({ before: first!, after: fake, of: url!.replace("127.0.0.1", "git.example") });
    await report({ before: first!, after: second });
    // If one of them were accepted as a push to this branch, this push would not start from its head.
    expect(await registered(second)).toMatchObject({ freshness: "STALE", last_error: null });
    expect(await stranger.get(`/factory/${theirs}/branches/${theirBranch}`)).toMatchObject({
      registered_head_sha: first,
    });
    expect(await stranger.call("GET", `/factory/${factory}/branches/${branch}`, { isAbsent: true })).toMatchObject({
      status: 404,
    });
  });
});

test("a repair activates the active version again: a new version number, the same agents and automations", async () => {
  push("Second.");
  await applied(api, factory!);
  await applied(api, factory!);
  const known = async () => ({
    agents: (await api.get(`/agent/identities?factory_uid=${factory}`)).agents.map(({ uid, name, prompt }: any) => ({
      uid,
      name,
      prompt,
    })),
    revision: (await api.get(`/factory/${factory}/source`)).active_revision,
    serving: (await api.get(`/factory/${factory}/source/drift`)).serving,
  });
  const before = await known();
  expect([before.agents.length, before.serving]).toEqual([2, []]);
  expect(await applied(api, factory!, { repair: true })).toMatchObject({ active_version: 2, state: "APPLIED" });
  expect(await known()).toEqual(before);
  expect(await api.call("POST", `/factory/${factory}/source/apply`, { body: { repair: "yes" } })).toMatchObject({
    status: 400,
  });
});
