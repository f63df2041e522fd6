import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import type { Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { aFactory, definitionFiles, teamOf } from "./support/resources.ts";

let platform: Deployment;
let api: Client;
let factory: string;

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 });
  api = await connect(platform);
  factory = await aFactory(api, definitionFiles("Go."));
});
afterAll(() => platform?.remove());

/** Returns a client with a key of the caller that has only these scopes. */
async function withScopes(...scopes: string[]): Promise<Client> {
  const { api_key: key } = await api.post(`/team/${await teamOf(api)}/keys`, { name: "scoped", scopes });
  return api.as(key);
}

const WEBHOOK = { path: "webhooks/ci.yaml", content: "secretName: CI\n" };

test("a key without webhook.manage cannot apply a definition with a webhook", async () => {
  await api.put(`/team/${await teamOf(api)}/secrets/CI`, { value: "hidden" });
  const other = await aFactory(api, definitionFiles("Go."));
  await api.put(`/factory/${other}/source`, { files: [...definitionFiles("Go."), WEBHOOK] });
  const applier = await withScopes("factory.view", "factory.manage", "agent.manage", "source.apply");
  expect(await applier.call("POST", `/factory/${other}/source/apply`)).toMatchObject({
    status: 403,
    body: { reason: "not_authorized" },
  });
  expect((await api.get(`/factory/${other}/webhooks`)).webhooks).toEqual([]);
  await api.post(`/factory/${other}/source/apply`);
  expect((await api.get(`/factory/${other}/webhooks`)).webhooks).toMatchObject([{ name: "ci" }]);
});

describe("problems of a definition", () => {
  const files = [
    ...definitionFiles("Go."),
    {
      path: "agents/third/agent.md",
      content: "---\ncolour: red\nmodel: no-such-model\nsecrets: [NO_SUCH_SECRET]\n---\nDo.\n",
    },
    {
      path: "automations/pushes/automation.md",
      content:
        "---\nenvironmentId: no-such-environment\ntriggers:\n  - {provider: github, event: push, filter: {repos: [noslash]}}\n---\nGo.\n",
    },
  ];
  const expected = [
    ["agents/third/agent.md", 2, "FF_UNKNOWN_FIELD"],
    ["agents/third/agent.md", 3, "FF_INVALID_REFERENCE"],
    ["agents/third/agent.md", 4, "FF_INVALID_REFERENCE"],
    ["automations/pushes/automation.md", 2, "FF_INVALID_REFERENCE"],
    ["automations/pushes/automation.md", 4, "FF_INVALID_FILTER"],
  ];
  const places = (diagnostics: any[]) => diagnostics.map(({ path, line, code }) => [path, line, code]);

  test.each(["validate", "plan"])(
    "are reported together by %s, for files and for the state they refer to",
    async (verb) => {
      const { valid, diagnostics } = await api.post(`/factory/${factory}/source/${verb}`, { files });
      expect([valid, places(diagnostics)]).toEqual([false, expected]);
    },
  );

  test("that depend on the platform's state are reported by validate and by plan", async () => {
    const unknown = [
      ...definitionFiles("Go."),
      { path: "agents/third/agent.md", content: "---\nsecrets: [NO_SUCH_SECRET]\n---\nDo.\n" },
    ];
    for (const verb of ["validate", "plan"])
      expect((await api.post(`/factory/${factory}/source/${verb}`, { files: unknown })).valid).toBe(false);
  });
});

test("an automation of the API that names unknown resources is rejected with all problems at once", async () => {
  const triggers = [{ provider: "github", event: "push", filter: { repos: ["noslash"] } }];
  const absent = {
    agent: "nobody",
    runner: "nowhere",
    model: "no-such-model",
    environment_id: "no-such-environment",
    secrets: ["NO_SUCH_SECRET"],
  };
  const { status, body } = await api.call("POST", `/factory/${factory}/automations`, {
    body: { name: "pushes", prompt: "Go.", triggers, ...absent },
  });
  expect([status, body.reason]).toEqual([400, "invalid_automation"]);
  for (const named of ["acme/shop", ...Object.values(absent).flat()]) expect(body.detail).toContain(named);
  expect((await api.get(`/factory/${factory}/automations`)).automations).toEqual([]);
});

test("applying a definition without an alias retains the alias that was set at creation", async () => {
  const alias = `made-${Date.now()}`;
  const made = await aFactory(api, definitionFiles("Go."), { alias });
  expect(await api.get(`/factory/${made}`)).toMatchObject({ name: "Works", alias, management: "service_files" });
});

test("a code host is not connected with a secret that the team does not have", async () => {
  const body = { name: "hub", kind: "github", secret_name: "NO_SUCH_SECRET" };
  expect(await api.call("POST", `/team/${await teamOf(api)}/code-hosts`, { body })).toMatchObject({
    status: 400,
    body: { reason: "secret_missing", detail: expect.stringContaining("NO_SUCH_SECRET") },
  });
});

test("the retry of a failed dispatch moves its task to the new run", async () => {
  const { run_id: run } = await api.post(`/factory/${factory}/runs`, { prompt: "Go." });
  const before = await eventually(() => api.get(`/factory/${factory}/task-by-run?run_id=${run}`));
  await api.post(`/agent/runs/${run}/cancel`);
  const { run_id: retry } = await api.post(`/agent/runs/${run}/retry`);
  const task = await eventually(() => api.get(`/factory/${factory}/task-by-run?run_id=${retry}`));
  expect(task).toMatchObject({ uid: before.uid, run_id: run, title: before.title });
  expect(task.conversation_id).not.toBe(before.conversation_id);
  const { tasks } = await api.get(`/factory/${factory}/tasks?include_current_run=true`);
  expect(tasks).toMatchObject([{ uid: before.uid, current_run: { run_id: retry } }]);
});

test("a runner has the same identifier in the factory's defaults, in its agents and in the configuration of runs", async () => {
  const [yaml, ...rest] = definitionFiles("Go.");
  const runner = { path: "runners/box.yaml", content: "platform: {linux: {dockerImage: debian}}\n" };
  const named = await aFactory(api, [
    { ...yaml!, content: `${yaml!.content}  runner: box\n` },
    ...rest,
    runner,
    { path: "agents/third/agent.md", content: "---\nrunner: box\n---\nDo.\n" },
  ]);
  const { agent_defaults: defaults } = await api.get(`/factory/${named}`);
  const { agents } = await api.get(`/agent/identities?factory_uid=${named}`);
  const third = agents.find(({ name }: any) => name === "third");
  const { run_id: run } = await api.post(`/factory/${named}/runs`, { prompt: "Go." });
  const { agent_config: config } = await api.get(`/agent/runs/${run}`);
  expect([third.default_runner_uid, config.runner_id]).toEqual([
    defaults.default_runner_uid,
    defaults.default_runner_uid,
  ]);
  expect(defaults.default_runner_uid).toMatch(/^[0-9a-f-]{36}$/);
  const asked = await api.post("/agent/runs", { prompt: "Go.", config: { runner_id: defaults.default_runner_uid } });
  expect((await api.get(`/agent/runs/${asked.run_id}`)).agent_config.runner_id).toBe(defaults.default_runner_uid);
});

test("the warnings of the active definition reflect the current state", async () => {
  const files = definitionFiles("Go.").map((file) =>
    file.path === "factory.yaml"
      ? { ...file, content: file.content.replace("[]", "[{owner: warned, name: prices}]") }
      : file,
  );
  const warned = await aFactory(api, files);
  const warnings = async () =>
    (await api.get(`/factory/${warned}/source`)).diagnostics.map(
      ({ message, severity }: any) => `${severity} ${message}`,
    );
  expect(await warnings()).toEqual(["warning repositories: no code host is connected for warned/prices."]);
  await api.post(`/team/${await teamOf(api)}/code-hosts`, { name: "warned", kind: "github", owners: ["warned"] });
  expect(await warnings()).toEqual([]);
});
