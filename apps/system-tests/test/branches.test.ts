import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { AUTHORITY, eventually, GitServer } from "@millwright/testing";
import type { Deployment } from "@millwright/test-platform";
import { bareRepository, git, pushFiles } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { RUN_TIMEOUT_MS, runOf, script, succeeded } from "./support/runs.ts";
import { applied, aTeam, definitionFiles, settled, teamOf, treeOf } from "./support/resources.ts";

let platform: Deployment;
let api: Client;
let server: GitServer;
let [root, own]: [string, string] = ["", ""];
let [bare, factory, branch]: string[] = [];

/** A platform that polls branch heads every 200 ms, so that tests need not wait for a poll. */
beforeAll(async () => {
  server = await new GitServer().start();
  own = mkdtempSync(join(tmpdir(), "millwright-authority-"));
  writeFileSync(join(own, "ca.pem"), AUTHORITY);
  platform = await startPlatform({
    workers: 1,
    env: { MILLWRIGHT_BRANCH_POLL_INTERVAL: "200ms", MILLWRIGHT_GIT_CA_FILE: join(own, "ca.pem") },
  });
  api = await connect(platform);
  server.root = root = platform.path("repositories");
});
afterAll(async () => {
  await platform?.remove();
  await server?.stop();
  rmSync(own, { recursive: true, force: true });
});

let count = 0;
beforeEach(async () => {
  const name = `factory-${(count += 1)}`;
  bare = bareRepository(root, "acme", name, treeOf(definitionFiles(script("say: First."))));
  ({ uid: factory } = await api.post("/factory", { name }));
  await api.put(`/factory/${factory}/source`, { repository_url: bare });
  [{ uid: branch }] = (await api.get(`/factory/${factory}/branches`)).branches;
});

const status = () => api.get(`/factory/${factory}/branches/${branch}`);
/**
 * Applies the branch. Returns the response, after the definition is applied in all services if the request succeeded.
 */
const apply = async () => {
  const response = await api.call("POST", `/factory/${factory}/branches/${branch}/apply`);
  if (response.status === 200) await settled(api, factory!);
  return response;
};
const registered = (sha: string) =>
  eventually(
    async () => {
      const now = await status();
      return now.registered_head_sha === sha && now;
    },
    { timeoutMs: RUN_TIMEOUT_MS },
  );

test("a push is detected, makes the branch stale, and is applied; existing runs retain their settings", async () => {
  const first = git(bare!, "rev-parse", "main").trim();
  expect(await registered(first)).toMatchObject({
    name: "main",
    state: "ACTIVE",
    freshness: "STALE",
    is_production: true,
    applied_sha: null,
    repository: { owner: "acme", code_forge: "NONE" },
  });
  expect(await apply()).toMatchObject({ status: 200, body: { uid: branch, freshness: "CURRENT", applied_sha: first } });
  expect(await status()).toMatchObject({
    uid: branch,
    state: "ACTIVE",
    freshness: "CURRENT",
    applied_sha: first,
    is_serving: true,
  });
  const { run_id: run } = await api.post(`/factory/${factory}/runs`, { prompt: "Go." });
  const before = await succeeded(api, run);
  const second = pushFiles(bare!, treeOf(definitionFiles(script("say: Second."))));
  expect(await registered(second)).toMatchObject({ freshness: "STALE", applied_sha: first });
  expect(await api.get(`/factory/${factory}/source/drift`)).toMatchObject({
    active_revision: first,
    serving: [],
    head: {
      state: "DIFFERS",
      revision: second,
      plan: [{ kind: "agent", name: "foreman", action: "update", changed_fields: ["prompt"] }],
    },
  });
  const answers = await Promise.all([apply(), apply(), apply()]);
  for (const answer of answers)
    expect(answer).toMatchObject({ status: 200, body: { freshness: "CURRENT", applied_sha: second } });
  expect((await api.get(`/factory/${factory}/source`)).active_version).toBe(2);
  const { agent_config, execution_location, title } = await runOf(api, run);
  expect({ agent_config, execution_location, title }).toEqual({
    agent_config: before.agent_config,
    execution_location: before.execution_location,
    title: before.title,
  });
  const { run_id: next } = await api.post(`/factory/${factory}/runs`, { prompt: "Go on." });
  await succeeded(api, next);
  expect(JSON.stringify(await api.get(`/agent/runs/${next}/conversation`))).toContain("Second.");
});
test("a force push and the deletion of a branch are reported, and the active version remains active", async () => {
  await registered(git(bare!, "rev-parse", "main").trim());
  await apply();
  const rewritten = pushFiles(bare!, {}, { isForced: true });
  expect(await registered(rewritten)).toMatchObject({ freshness: "STALE" });
  expect((await apply()).body).toMatchObject({ freshness: "CURRENT", applied_sha: rewritten });
  git(bare!, "update-ref", "-d", "refs/heads/main");
  expect(
    await eventually(
      async () => {
        const now = await status();
        return now.registered_head_sha === null && now;
      },
      { timeoutMs: RUN_TIMEOUT_MS },
    ),
  ).toMatchObject({ state: "ACTIVE", freshness: "UNKNOWN", is_serving: true, last_error: { code: "branch_missing" } });
  expect(await apply()).toMatchObject({ status: 409, body: { reason: "branch_head_unknown" } });
  expect((await api.get(`/factory/${factory}/source`)).active_version).toBe(2);
});
test("a definition with problems returns 400 with all of them", async () => {
  await registered(pushFiles(bare!, { "agents/helper/agent.md": "---\nagentType: NONSENSE\ncolour: red\n---\n" }));
  const { status: code, body } = await apply();
  expect([code, body.reason, body.diagnostics.length]).toEqual([400, "definition_invalid", 3]);
  expect(await status()).toMatchObject({
    state: "FAILED",
    applied_sha: null,
    last_error: { code: "definition_invalid", diagnostics: body.diagnostics },
  });
});
test("tracking is deleted with 204, also repeatedly, except of the production branch", async () => {
  git(bare!, "branch", "side", "main");
  const { uid: side } = await api.post(`/factory/${factory}/branches`, { name: "side" });
  const path = `/factory/${factory}/branches/${side}`;
  for (let n = 0; n < 2; n += 1) expect((await api.call("DELETE", path)).status).toBe(204);
  expect(await api.get(path)).toMatchObject({ state: "DELETED", freshness: "UNKNOWN", deleted_at: expect.any(String) });
  expect(await api.call("POST", `${path}/apply`)).toMatchObject({ status: 409, body: { reason: "branch_deleted" } });
  expect(await api.call("DELETE", `/factory/${factory}/branches/${branch}`)).toMatchObject({
    status: 409,
    body: { reason: "production_branch" },
  });
  expect(git(bare!, "rev-parse", "side")).toBe(git(bare!, "rev-parse", "main"));
});
test("another team's branch is indistinguishable from an unknown one", async () => {
  const stranger = await aTeam(api, "strangers");
  const { uid: theirs } = await stranger.post("/factory", { name: "Theirs" });
  for (const path of [`/factory/${factory}/branches/${branch}`, `/factory/${theirs}/branches/${branch}`])
    expect((await stranger.call("GET", path, { isAbsent: true })).status).toBe(404);
  expect((await stranger.call("DELETE", `/factory/${theirs}/branches/${branch}`)).status).toBe(204);
  expect((await stranger.call("DELETE", `/factory/${factory}/branches/${branch}`, { isAbsent: true })).status).toBe(
    404,
  );
  expect(await status()).toMatchObject({ state: "ACTIVE" });
});
test("a team without the capability has no branches", async () => {
  const team = await teamOf(api);
  await api.patch(`/team/${team}`, { capabilities: { factory_branches: false } });
  const off = await api.call("GET", `/factory/${factory}/branches/${branch}`);
  await api.patch(`/team/${team}`, { capabilities: { factory_branches: true } });
  expect(off).toMatchObject({ status: 403, body: { error_code: "feature_not_available" } });
  expect(await status()).toMatchObject({ uid: branch });
});
test("a private repository is read with the team's secret, which appears nowhere", async () => {
  server.wants = "reader:canary-of-git";
  const team = await teamOf(api);
  await api.put(`/team/${team}/secrets/GIT`, { value: "wrong" });
  const url = `${server.url}/acme/factory-${count}.git`;
  expect(
    await api.put(`/factory/${factory}/source`, { repository_url: url, secret_name: "GIT", username: "reader" }),
  ).toMatchObject({ repository_url: url, secret_name: "GIT", username: "reader" });
  expect(await api.call("POST", `/factory/${factory}/source/apply`)).toMatchObject({
    status: 400,
    body: { reason: "source_refused" },
  });
  await api.put(`/team/${team}/secrets/GIT`, { value: "canary-of-git" });
  expect(await applied(api, factory!)).toMatchObject({
    state: "APPLIED",
    active_revision: git(bare!, "rev-parse", "main").trim(),
  });
  const response = [
    await api.get(`/factory/${factory}/source`),
    await api.get(`/factory/${factory}/branches`),
    platform.output(),
  ];
  expect(JSON.stringify(response)).not.toContain("canary-of-git");
});
