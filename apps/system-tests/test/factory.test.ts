import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import type { Deployment } from "@millwright/test-platform";
import { bareRepository, git } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { ended, eventsOf, waitForState, runOf, script, waitForEvent, startRun, succeeded } from "./support/runs.ts";
import { aFactory, applied, definitionFiles, teamOf } from "./support/resources.ts";

let platform: Deployment;
let api: Client;

beforeAll(async () => {
  platform = await startPlatform();
  api = await connect(platform);
});
afterAll(() => platform?.remove());

describe("work on a repository", () => {
  let bare: string;
  let factory: string;
  let run: any;
  beforeAll(async () => {
    const root = platform.path("repositories");
    bare = bareRepository(root, "acme", "prices", { "README.md": "# Prices\n", "src/a.txt": "old\n" });
    await api.post(`/team/${await teamOf(api)}/code-hosts`, { name: "local", kind: "local", root, owners: ["acme"] });
    const files = definitionFiles("No script here.").map((file) =>
      file.path === "factory.yaml"
        ? { ...file, content: file.content.replace("[]", "\n  - owner: acme\n    name: prices") }
        : file,
    );
    factory = await aFactory(api, files);
    const steps = [
      "shell: cd /workspace/prices && cat src/a.txt",
      "edit: {path: src/a.txt, old: old, new: new}",
      "pull_request: {title: Use <new> prices, body: As asked.}",
    ];
    const again = ["write: {path: src/b.txt, content: more}", "pull_request: {title: Use <new> prices}"];
    const { run_id: id } = await api.post(`/factory/${factory}/runs`, { prompt: script(...steps, ...again) });
    run = await succeeded(api, id);
  });
  const pullRequest = () => run.artifacts.find((one: any) => one.artifact_type === "PULL_REQUEST").data;

  test("ends in one pull request, whose branch has all changes", () => {
    expect(run.artifacts).toMatchObject([
      {
        artifact_type: "PULL_REQUEST",
        data: {
          url: expect.stringContaining(`/runs/${run.run_id}/pull-requests/`),
          branch: expect.any(String),
          status: "open",
        },
      },
    ]);
    const { branch } = pullRequest();
    expect(git(bare, "show", `${branch}:src/a.txt`)).toBe("new\n");
    expect(git(bare, "diff", "--name-only", `main...${branch}`).trim().split("\n")).toEqual(["src/a.txt", "src/b.txt"]);
    expect(git(bare, "show", "main:src/a.txt")).toBe("old\n");
  });
  test("is readable with its diff, for those with the run's link or a key", async () => {
    const { search } = new URL(run.session_link);
    const uid = new URL(pullRequest().url).pathname.split("/").at(-1);
    const seen = await api.get(`/agent/runs/${run.run_id}/pull-requests/${uid}`);
    expect(seen).toMatchObject({ title: "Use <new> prices", head_branch: pullRequest().branch, base_branch: "main" });
    expect(seen.diff).toContain("+new");
    expect((await api.fetch(`${pullRequest().url}.diff${search}`)).text).toMatch(/^-old$/m);
    expect((await api.fetch(`${pullRequest().url}.diff`)).status).toBe(401);
  });
  test("is an output of its task", async () => {
    // The task is created when the factories service consumes the event of the run.
    const task = await eventually(() => api.get(`/factory/${factory}/task-by-run?run_id=${run.run_id}`));
    expect(task.outputs.map((one: any) => [one.artifact_type, one.data.url])).toEqual([
      ["PULL_REQUEST", pullRequest().url],
    ]);
    expect((await api.get(`/factory/${factory}/task-by-conversation?conversation_id=${run.conversation_id}`)).uid).toBe(
      task.uid,
    );
  });
  test("continues where it was after an answer", async () => {
    await api.post(`/agent/runs/${run.run_id}/followups`, {
      message: script("shell: cd /workspace/prices && git status --porcelain && cat src/b.txt"),
    });
    const seen = await waitForEvent(
      api,
      run.run_id,
      ({ kind, payload }) => kind === "tool_end" && payload.output.output === "more",
    );
    expect(seen.payload.output.exit_code).toBe(0);
    await succeeded(api, run.run_id);
  });
});

describe("a definition", () => {
  test("with 50 errors reports 50 positions and changes nothing; the last valid version remains active", async () => {
    const factory = await aFactory(api, definitionFiles(script("say: I still serve.")));
    const faulty = Array.from({ length: 50 }, (_one, index) => ({
      path: `agents/a${index}/agent.md`,
      content: "---\ndescription: x\nagentType: NONSENSE\n---\n\nDo.\n",
    }));
    const files = [...definitionFiles("new"), ...faulty];
    const check = await api.post(`/factory/${factory}/source/validate`, { files });
    expect([check.valid, check.diagnostics.length]).toEqual([false, 50]);
    expect(new Set(check.diagnostics.map((one: any) => one.path)).size).toBe(50);
    for (const one of check.diagnostics)
      expect(one).toMatchObject({ line: 3, column: expect.any(Number), severity: "error" });
    const before = await api.get(`/factory/${factory}/source`);
    await api.put(`/factory/${factory}/source`, { files });
    const apply = await api.call("POST", `/factory/${factory}/source/apply`);
    expect([apply.status, apply.body.reason, apply.body.diagnostics]).toEqual([
      400,
      "definition_invalid",
      check.diagnostics,
    ]);
    expect(await api.get(`/factory/${factory}/source`)).toMatchObject({
      active_version: before.active_version,
      active_revision: before.active_revision,
    });
    const { run_id: id } = await api.post(`/factory/${factory}/runs`, { prompt: "Go." });
    await succeeded(api, id);
    expect(JSON.stringify(await eventsOf(api, id))).toContain("I still serve.");
  });
  test("reports positions of problems that only other services can detect", async () => {
    const { uid } = await api.post("/factory", { name: "Unresolved" });
    const files = [
      {
        path: "factory.yaml",
        content:
          "schemaVersion: v1alpha1\nname: U\nrepositories:\n  - {owner: a, name: b}\n  - owner: nowhere\n    name: shop\nsecrets: [S1]\nagentDefaults:\n  harness: {type: claude, auth: {source: managedSecret, secretName: S2}}\n  secrets: [S1, S3]\n  workerHost: nobody\n",
      },
      {
        path: "agents/lead/agent.md",
        content: "---\nagentType: FOREMAN\nmodel: no-such\nenvironmentId: none\n---\nLead.\n",
      },
      { path: "agents/aide/agent.md", content: "---\nharness:\n  type: oz\n  model: no-such\n---\nHelp.\n" },
      {
        path: "automations/hook/automation.md",
        content:
          "---\ntriggers:\n  - {provider: schedule, event: cron_fired, schedule: {cron: '@daily'}}\n  - provider: webhook\n    event: received\n    filter:\n      webhook_ids: [00000000-0000-7000-8000-000000000000]\n---\nGo.\n",
      },
      {
        path: "automations/name/automation.md",
        content:
          "---\ntriggers:\n  - {provider: webhook, event: received, filter: {webhook_ids: {in: [in]}}}\n---\nGo.\n",
      },
      { path: "runners/mac.yaml", content: "platform:\n  os: macos\n" },
      { path: "webhooks/in.yaml", content: "enabled: true\nsecretName: S4\n" },
    ];
    const found = [
      ["agents/aide/agent.md", 4, 10, "error"],
      ["agents/lead/agent.md", 3, 8, "error"],
      ["agents/lead/agent.md", 4, 16, "error"],
      ["automations/hook/automation.md", 7, 20, "warning"],
      ["automations/name/automation.md", 3, 64, "error"],
      ["factory.yaml", 4, 5, "warning"],
      ["factory.yaml", 5, 5, "warning"],
      ["factory.yaml", 7, 11, "error"],
      ["factory.yaml", 9, 69, "error"],
      ["factory.yaml", 10, 13, "error"],
      ["factory.yaml", 10, 17, "error"],
      ["factory.yaml", 11, 15, "warning"],
      ["runners/mac.yaml", 2, 7, "warning"],
      ["webhooks/in.yaml", 2, 13, "error"],
    ];
    const places = (diagnostics: any[]) =>
      diagnostics.map(({ path, line, column, severity }) => [path, line, column, severity]);
    expect(places((await api.post(`/factory/${uid}/source/plan`, { files })).diagnostics)).toEqual(found);
    await api.put(`/factory/${uid}/source`, { files });
    const { status, body } = await api.call("POST", `/factory/${uid}/source/apply`);
    expect([status, places(body.diagnostics)]).toEqual([400, found]);
  });
  test("shows what applying would change, and applying changes exactly that", async () => {
    const factory = await aFactory(api, definitionFiles("one"));
    const files = definitionFiles("two").filter(({ path }) => !path.includes("helper"));
    const { plan } = await api.post(`/factory/${factory}/source/plan`, { files });
    const changes = (items: any[]) =>
      new Set(
        items
          .filter(({ kind, action }) => kind === "agent" && !/^(keep|unchanged|none)$/.test(action))
          .map(({ name, action }) => `${action} ${name}`),
      );
    expect(changes(plan)).toEqual(new Set(["update foreman", "delete helper"]));
    await api.put(`/factory/${factory}/source`, { files });
    expect(changes((await api.post(`/factory/${factory}/source/apply`)).plan)).toEqual(changes(plan));
    expect((await api.get(`/agent/identities?factory_uid=${factory}`)).agents.map((one: any) => one.name)).toEqual([
      "foreman",
    ]);
  });
  test("without a foreman rejects work with 409, not retryable", async () => {
    const { uid } = await api.post("/factory", { name: "Empty" });
    const { status, body, headers } = await api.call("POST", `/factory/${uid}/runs`, { body: { prompt: "Go." } });
    expect([status, body.retryable, headers.get("x-should-retry")]).toEqual([409, false, "false"]);
    await api.delete(`/factory/${uid}`);
    expect((await api.call("GET", `/factory/${uid}`)).status).toBe(404);
  });
  test("with active work is retained, or deleted with all of it", async () => {
    const factory = await aFactory(api, definitionFiles(script("shell: sleep 600")));
    const { run_id: id } = await api.post(`/factory/${factory}/runs`, { prompt: "Go." });
    await waitForState(api, id, "INPROGRESS");
    expect(await api.call("DELETE", `/factory/${factory}`)).toMatchObject({
      status: 409,
      body: { reason: "factory_has_live_runs" },
    });
    expect((await api.get(`/factory/${factory}`)).uid).toBe(factory);
    await api.delete(`/factory/${factory}?cancel_runs=true`);
    expect((await ended(api, id)).state).toBe("CANCELLED");
    expect((await api.call("POST", `/factory/${factory}/runs`, { body: { prompt: "Go." } })).status).toBe(404);
  });
});

test("events are streamed as they happen, to an early reader and to one that reconnects", async () => {
  const id = await startRun(api, script("say: one", "shell: sleep 1", "say: two"));
  const read = async (lastId: string) => {
    const { body } = await api.call("GET", `/agent/runs/${id}/events`, {
      headers: { accept: "text/event-stream", "last-event-id": lastId },
    });
    return [...(body as string).matchAll(/^data: (\{"seq".*)$/gm)].map(([, json]) => JSON.parse(json!));
  };
  const [live, resumed] = await Promise.all([read("0"), read("2")]);
  expect((await runOf(api, id)).state).toBe("SUCCEEDED");
  const pages = await eventsOf(api, id);
  expect([live, resumed]).toEqual([pages, pages.slice(2)]);
});

test("a webhook that a file defines accepts deliveries with its secret's current value until the file is removed", async () => {
  const secret = `/team/${await teamOf(api)}/secrets/HOOK`;
  await api.put(secret, { value: "first" });
  const tree = definitionFiles("No script here.");
  const file = { path: "webhooks/ci.yaml", content: "secretName: HOOK\ndeliveryIdHeader: X-Id\n" };
  const factory = await aFactory(api, [...tree, file]);
  const [hook] = (await api.get(`/factory/${factory}/webhooks`)).webhooks;
  expect(hook).toMatchObject({ name: "ci", management: "files", enabled: true, secret_name: "HOOK" });
  const send = (id: string, token: string) =>
    api.fetch(hook.ingress_url, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "x-id": id },
      body: '{"n":1.0}',
    });
  expect(await send("one", "first")).toMatchObject({ status: 202, text: '{"delivery_id":"one"}' });
  await api.put(secret, { value: "second" });
  expect([(await send("two", "first")).status, (await send("two", "second")).status]).toEqual([401, 202]);
  const log = (await api.get(`/factory/${factory}/webhooks/${hook.uid}/deliveries`)).deliveries;
  const accepted = log.filter((one: any) => one.outcome === "accepted");
  expect(accepted.map((one: any) => one.delivery_id)).toEqual(["two", "one"]);
  const tested = await api.post("/factory/webhooks/dry-run", {
    factory_uid: factory,
    webhook_ids: [hook.uid],
    delivery_uid: accepted[0].uid,
    payload_filter: { n: [1] },
  });
  expect(tested).toMatchObject({ would_trigger: true, label: "Would trigger" });
  const listening = {
    path: "automations/a/automation.md",
    content: `---\ntriggers:\n  - provider: webhook\n    event: received\n    filter: { webhook_ids: [${hook.uid}] }\n---\nGo.\n`,
  };
  const problemsOf = async (...files: object[]) =>
    (await api.post(`/factory/${factory}/source/plan`, { files: [...tree, ...files] })).diagnostics.map(
      ({ path, line, severity }: any) => `${path} ${line} ${severity}`,
    );
  expect([await problemsOf(file, listening), await problemsOf(listening)]).toEqual([
    [],
    ["automations/a/automation.md 5 warning"],
  ]);
  await api.put(`/factory/${factory}/source`, { files: tree });
  await applied(api, factory);
  expect((await send("three", "second")).status).toBe(404);
});
