import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Deployment } from "@millwright/test-platform";
import { bareRepository } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { eventsOf, script, startRun, succeeded } from "./support/runs.ts";
import { applied, teamOf } from "./support/resources.ts";

const FIRST_FACTORY = join(import.meta.dirname, "../../../examples/first-factory");
const PRICE_LIST = join(import.meta.dirname, "../../../examples/price-list");
const EXAMPLES = join(import.meta.dirname, "../../../examples/factories");
const names = readdirSync(EXAMPLES).filter((name) => statSync(join(EXAMPLES, name)).isDirectory());

/** Files that the setup commands of the examples' runners require. */
const PACKAGE = {
  "package.json": JSON.stringify({ name: "shop", version: "1.0.0", scripts: { build: "true" } }),
  "package-lock.json": JSON.stringify({
    name: "shop",
    version: "1.0.0",
    lockfileVersion: 3,
    requires: true,
    packages: { "": { name: "shop", version: "1.0.0" } },
  }),
};

/** Changes of the test: no model is called, and the worker and agent program of one example are not available. */
const WITHOUT_AI = { model_id: "scripted", worker_host: "service" };

let platform: Deployment;
let api: Client;
beforeAll(async () => {
  platform = await startPlatform();
  api = await connect(platform);
  const root = platform.path("repositories");
  for (const repository of ["shop", "shop-api", "storefront"]) bareRepository(root, "acme", repository, PACKAGE);
  await api.post(`/team/${await teamOf(api)}/code-hosts`, { name: "local", kind: "local", root });
  for (const name of ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "STAGING_PASSWORD", "ALERTS_WEBHOOK_SECRET"])
    await api.put(`/team/${await teamOf(api)}/secrets/${name}`, { value: "an-example" });
});
afterAll(() => platform?.remove());

const filesOf = (name: string) => filesBelow(join(EXAMPLES, name));
const filesBelow = (directory: string) =>
  readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((path) => statSync(join(directory, path)).isFile())
    .map((path) => ({ path, content: readFileSync(join(directory, path), "utf8") }));

test("there is an example for each of the seven situations", () => {
  expect(names.toSorted()).toEqual([
    "common-automations",
    "full-lifecycle",
    "harness-per-agent",
    "review-only",
    "self-hosted-worker",
    "single-repo",
    "ui-verification",
  ]);
});

test.each(names)("%s applies unchanged, a second apply changes nothing, and its factory works", async (name) => {
  const { uid } = await api.post("/factory", { name });
  await api.put(`/factory/${uid}/source`, { files: filesOf(name) });
  const { plan } = await api.post(`/factory/${uid}/source/plan`);
  const source = await applied(api, uid);
  expect([source.state, source.diagnostics.filter(({ severity }: any) => severity === "error")]).toEqual([
    "APPLIED",
    [],
  ]);
  const created = plan
    .filter(({ action }: any) => action === "create")
    .map(({ kind, name: of }: any) => `${kind} ${of}`);
  const expected = filesOf(name).flatMap(({ path }) => {
    const [, kind, of] =
      /^(agents|automations|scorers|benchmarks)\/([^/]+)\/[^/]+$/.exec(path) ??
      /^(webhooks|runners)\/(.+)\.yaml$/.exec(path) ??
      [];
    return kind ? [`${kind.slice(0, -1)} ${of}`] : [];
  });
  expect(created).toEqual(expect.arrayContaining(expected));
  const again = await api.post(`/factory/${uid}/source/plan`);
  expect(again.plan.filter(({ action }: any) => action !== "unchanged")).toEqual([]);
  const { foreman_agent_uid: foreman, repositories } = await api.get(`/factory/${uid}`);
  const run = await startRun(api, script("say: Done."), { agent_identity_uid: foreman, config: WITHOUT_AI });
  await succeeded(api, run);
  const events = await eventsOf(api, run);
  expect(events.filter(({ kind }) => kind === "repository_cloned").length).toBe(repositories.length);
  const images = filesOf(name).flatMap(({ content }) =>
    [...content.matchAll(/dockerImage: (.+)/g)].map(([, image]) => image),
  );
  expect(events.filter(({ kind }) => kind === "image_substituted").map(({ payload }) => payload.image)).toEqual(images);
});

test("an automation of the first factory starts a run that succeeds, although it has no task to move", async () => {
  const program = Object.fromEntries(filesBelow(PRICE_LIST).map(({ path, content }) => [path, content]));
  bareRepository(platform.path("repositories"), "acme", "price-list", program);
  const { uid } = await api.post("/factory", { name: "First" });
  const files = filesBelow(FIRST_FACTORY);
  const scripted = files.map(({ path, content }) => ({
    path,
    content: content.replace("model: auto", "model: scripted"),
  }));
  await api.put(`/factory/${uid}/source`, { files: scripted });
  await applied(api, uid);
  const triggers = [{ provider: "schedule", event: "cron_fired", schedule: { cron: "0 0 1 1 *" } }];
  const automation = await api.post(`/factory/${uid}/automations`, {
    name: "yearly",
    prompt: "The tests fail.",
    triggers,
  });
  const { run_id: runId } = await api.post(`/factory/${uid}/automations/${automation.uid}/run`, {});
  await succeeded(api, runId);
  const moves = (await eventsOf(api, runId)).filter(
    ({ kind, payload }) => kind === "tool_end" && payload.name === "set_task_stage",
  );
  expect(moves.map(({ payload }) => payload.state)).toEqual(["failed"]);
});
