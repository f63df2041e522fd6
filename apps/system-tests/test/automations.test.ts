import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { randomUUID } from "node:crypto";
import { sign } from "@octokit/webhooks-methods";
import { eventually } from "@millwright/testing";
import { bareRepository, type Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { RUN_TIMEOUT_MS, runOf, script, succeeded } from "./support/runs.ts";
import { aCodeHost, aFactory, applied, aTeam, definitionFiles, teamOf } from "./support/resources.ts";

let platform: Deployment;
let api: Client;
let factory: string;
let hook: any;

/** Its first scheduled time comes while the other tests run. */
let everyMinute: any;
let disabled: any;

beforeAll(async () => {
  platform = await startPlatform();
  api = await connect(platform);
  factory = await aFactory(api, definitionFiles(script("say: Done.")));
  hook = await aHook();
  everyMinute = await anAutomation({
    name: "every minute",
    triggers: [{ provider: "schedule", event: "cron_fired", schedule: { cron: "* * * * *", name: "often" } }],
  });
  disabled = await anAutomation({
    name: "disabled",
    enabled: false,
    triggers: [{ provider: "schedule", event: "cron_fired", schedule: { cron: "* * * * *" } }],
  });
});
afterAll(() => platform?.remove());

const AUTOMATIONS = () => `/factory/${factory}/automations`;
const aHook = (): Promise<any> => api.post(`/factory/${factory}/webhooks`, { name: `hook ${randomUUID()}` });
const trigger = (payload?: object, webhook = hook) => ({
  provider: "webhook",
  event: "received",
  filter: { webhook_ids: [webhook.uid], ...(payload && { payload }) },
});
const anAutomation = (more: object = {}): Promise<any> =>
  api.post(AUTOMATIONS(), { name: "auto", prompt: script("say: Done."), triggers: [trigger()], ...more });
/** Sends a delivery until it is accepted. Returns its log entry. */
async function deliver(
  body: string,
  { webhook = hook, id = randomUUID() }: { webhook?: any; id?: string } = {},
): Promise<any> {
  expect(
    (
      await api.fetch(webhook.ingress_url, {
        method: "POST",
        headers: { authorization: `Bearer ${webhook.secret}`, "x-service-delivery-id": id },
        body,
      })
    ).status,
  ).toBe(202);
  return (await logOf(webhook)).find((one) => one.outcome === "accepted" && one.delivery_id === id);
}
const logOf = async (webhook = hook): Promise<any[]> =>
  (await api.get(`/factory/${factory}/webhooks/${webhook.uid}/deliveries?limit=100`)).deliveries;
/** Returns all decisions about an event once none is pending. */
const decided = (eventUid: string, count: number, factoryUid = factory): Promise<any[]> =>
  eventually(
    async (): Promise<any> => {
      const { status, body } = await api.call(
        "GET",
        `/factory/${factoryUid}/decisions?event_uid=${eventUid}&limit=100`,
      );
      const found: any[] = status === 200 ? body.decisions : [];
      return found.length === count && found.every(({ outcome }) => outcome !== "pending") ? found : false;
    },
    { timeoutMs: RUN_TIMEOUT_MS, everyMs: 100 },
  );

describe("a delivery", () => {
  test("starts one run of every automation that matches; the run has the envelope and the unchanged payload, and the log shows it", async () => {
    const webhook = await aHook();
    const reads = await anAutomation({
      name: "reads",
      prompt: `Look.\n\n${script("shell: cp .attachments/*/event-payload.json got.json", "artifact: got.json")}`,
      triggers: [trigger({ kind: ["alert"] }, webhook)],
    });
    const off = await anAutomation({ name: "off", enabled: false, triggers: [trigger(undefined, webhook)] });
    const other = await anAutomation({ name: "other", triggers: [trigger({ kind: ["other"] }, webhook)] });
    const bytes = '{"kind":"alert","n":1.0,"n":12345678901234567890, "x":"\\u00e9 \u202e ```"}';
    const delivery = await deliver(bytes, { webhook, id: "evt-1" });
    const decisions = await decided(delivery.uid, 3);
    expect(decisions.map(({ automation, outcome }) => `${automation} ${outcome}`).toSorted()).toEqual([
      "off disabled",
      "other not_matched",
      "reads fired",
    ]);
    const fired = decisions.find(({ automation_uid: uid }) => uid === reads.uid);
    const run = await succeeded(api, fired.run_id);
    const trigger_url = `${platform.url}/factories/${factory}/events/${delivery.uid}`;
    expect(run).toMatchObject({
      title: "reads",
      source: "CUSTOM_WEBHOOK",
      factory_uid: factory,
      trigger_url,
      metadata: { automation_id: reads.uid, automation_uid: reads.uid, webhook_uid: webhook.uid, delivery_id: "evt-1" },
    });
    expect(run.prompt).toContain(
      `\n\n[webhook delivery]\nwebhook: ${webhook.name} (${webhook.uid})\ndelivery: evt-1 received `,
    );
    expect(run.prompt).toContain(`payload: event-payload.json (${Buffer.byteLength(bytes)} bytes, untrusted)`);
    const file = run.artifacts.find((one: any) => one.artifact_type === "FILE");
    const { download_url: url } = (await api.get(`/agent/artifacts/${file.data.artifact_uid}`)).data;
    expect((await api.fetch(url)).text).toBe(bytes);
    expect(await api.get(`/factory/${factory}/webhooks/${webhook.uid}/deliveries/${delivery.uid}`)).toMatchObject({
      runs: [{ automation: "reads", automation_uid: reads.uid, run_id: fired.run_id }],
    });
    expect(await api.get(`${AUTOMATIONS()}/${other.uid}/decisions?event_uid=${delivery.uid}`)).toMatchObject({
      decisions: [
        {
          outcome: "not_matched",
          checks: [{ trigger: 0, passed: false, failed: ["kind"] }],
          run_id: null,
          subject: { delivery_id: "evt-1" },
        },
      ],
    });
    expect((await api.get(`${AUTOMATIONS()}/${reads.uid}`)).last_fired_at).not.toBeNull();
    expect((await api.get(`${AUTOMATIONS()}/${off.uid}`)).last_fired_at).toBeNull();
  });

  test("sent sixteen times concurrently starts one run", async () => {
    const webhook = await aHook();
    const { uid } = await anAutomation({ name: "copies", triggers: [trigger(undefined, webhook)] });
    const id = randomUUID();
    const send = () =>
      api.fetch(webhook.ingress_url, {
        method: "POST",
        headers: { authorization: `Bearer ${webhook.secret}`, "x-service-delivery-id": id },
        body: "{}",
      });
    expect((await Promise.all(Array.from({ length: 16 }, send))).map(({ status }) => status)).toEqual(
      Array(16).fill(202),
    );
    const [accepted, ...others] = (await logOf(webhook)).filter(({ outcome }) => outcome === "accepted");
    expect(others).toEqual([]);
    const [decision] = await decided(accepted.uid, 1);
    expect(decision).toMatchObject({ automation_uid: uid, outcome: "fired" });
    expect(
      (await api.get(`/agent/runs?factory_uid=${factory}&metadata[automation_uid]=${uid}`)).runs.map(
        (run: any) => run.run_id,
      ),
    ).toEqual([decision.run_id]);
  });

  test("is evaluated by the automations that files define, which only files can change", async () => {
    const tree = definitionFiles(script("say: Done."));
    const file = {
      path: "automations/alerts/automation.md",
      content: `---\nagent: helper\ntriggers:\n  - provider: webhook\n    event: received\n    filter: { webhook_ids: ["HOOK"] }\n---\n\nLook.\n`,
    };
    const uid = await aFactory(api, tree);
    const webhook = await api.post(`/factory/${uid}/webhooks`, { name: "ci" });
    const put = async (files: object[]) => {
      await api.put(`/factory/${uid}/source`, { files });
      return applied(api, uid);
    };
    const source = await put([...tree, { ...file, content: file.content.replace("HOOK", randomUUID()) }]);
    expect(source).toMatchObject({
      state: "APPLIED",
      diagnostics: [{ path: file.path, code: "FF_INVALID_REFERENCE", severity: "warning" }],
    });
    await put([...tree, { ...file, content: file.content.replace("HOOK", webhook.uid) }]);
    const [automation] = (await api.get(`/factory/${uid}/automations`)).automations;
    expect(automation).toMatchObject({
      name: "alerts",
      agent: "helper",
      management: "files",
      prompt: "Look.",
      triggers: [trigger(undefined, { uid: webhook.uid })].map((one) => ({
        ...one,
        filter: { webhook_ids: { in: [webhook.uid] } },
      })),
    });
    const { name, agent, prompt, triggers } = automation;
    expect(
      await api.call("PUT", `/factory/${uid}/automations/${automation.uid}`, {
        body: { name, agent, triggers, prompt: "Mine.", enabled: true },
      }),
    ).toMatchObject({ status: 409, body: { reason: "managed_by_files" } });
    expect(await api.call("DELETE", `/factory/${uid}/automations/${automation.uid}`)).toMatchObject({
      status: 409,
      body: { reason: "managed_by_files" },
    });
    expect(
      await api.put(`/factory/${uid}/automations/${automation.uid}`, { name, agent, triggers, prompt, enabled: false }),
    ).toMatchObject({ enabled: false });
    expect(
      await api.put(`/factory/${uid}/automations/${automation.uid}`, { name, agent, triggers, prompt, enabled: true }),
    ).toMatchObject({ enabled: true });
    await api.fetch(webhook.ingress_url, {
      method: "POST",
      headers: { authorization: `Bearer ${webhook.secret}` },
      body: "{}",
    });
    const [delivery] = (await api.get(`/factory/${uid}/webhooks/${webhook.uid}/deliveries`)).deliveries.filter(
      (one: any) => one.outcome === "accepted",
    );
    const [decision] = await decided(delivery.uid, 1, uid);
    expect((await runOf(api, decision.run_id)).agent_config.name).toBe("helper");
    await put(tree);
    expect((await api.get(`/factory/${uid}/automations`)).automations).toEqual([]);
  });
});

describe("people", () => {
  test("run an automation now and replay a delivery, as a dry run or not, recorded in the audit log", async () => {
    const webhook = await aHook();
    const automation = await anAutomation({ name: "asked", triggers: [trigger({ kind: ["a"] }, webhook)] });
    const now = await api.post(`${AUTOMATIONS()}/${automation.uid}/run`);
    expect(now).toMatchObject({ provider: "manual", event: "run_now" });
    const [ran] = await decided(now.event_uid, 1);
    expect((await runOf(api, ran.run_id)).prompt).toBe(automation.prompt);
    const [yes, no] = [await deliver('{"kind":"a"}', { webhook }), await deliver('{"kind":"b"}', { webhook })];
    await decided(yes.uid, 1);
    await decided(no.uid, 1);
    const replay = (delivery: any, dry_run: boolean) =>
      api.post(`/factory/${factory}/webhooks/${webhook.uid}/deliveries/${delivery.uid}/replay`, {
        automation_uid: automation.uid,
        dry_run,
      });
    expect(await replay(no, true)).toMatchObject({
      would_trigger: false,
      label: "Would not trigger",
      decision: { outcome: "not_matched" },
    });
    expect(await replay(yes, true)).toMatchObject({ would_trigger: true, label: "Would trigger" });
    expect((await logOf(webhook)).find(({ uid }) => uid === yes.uid).runs).toHaveLength(1);
    await replay(yes, false);
    await decided(yes.uid, 2);
    expect((await logOf(webhook)).find(({ uid }) => uid === yes.uid).runs).toHaveLength(2);
    const audited = await eventually(
      async () => {
        const { entries } = await api.get(`/team/${await teamOf(api)}/audit?limit=100`);
        const asked = entries.filter((one: any) => one.entity_uid === automation.uid);
        return asked.length >= 5 ? asked : false;
      },
      { timeoutMs: RUN_TIMEOUT_MS },
    );
    expect(audited.map(({ type }: any) => type).toSorted()).toEqual([
      "millwright.automation.created.v1",
      ...Array(4).fill("millwright.automation.run_requested.v1"),
    ]);
  });

  test("get the first response when they repeat a request with its key, even if the automation was deleted; another body is a conflict", async () => {
    const webhook = await aHook();
    const automation = await anAutomation({ name: "asked twice", triggers: [trigger(undefined, webhook)] });
    const delivery = await deliver("{}", { webhook });
    await decided(delivery.uid, 1);
    const headers = { "idempotency-key": randomUUID() };
    const runNow = () => api.call("POST", `${AUTOMATIONS()}/${automation.uid}/run`, { headers });
    const replay = (dryRun: boolean) =>
      api.call("POST", `/factory/${factory}/webhooks/${webhook.uid}/deliveries/${delivery.uid}/replay`, {
        headers,
        body: { automation_uid: automation.uid, dry_run: dryRun },
      });
    const dispatch = (prompt: string) => api.call("POST", `/factory/${factory}/runs`, { headers, body: { prompt } });
    const first = [await runNow(), await replay(false), await dispatch(script("say: Done."))];
    expect(first.map(({ status }) => status)).toEqual([201, 200, 201]);
    await decided(first[0]!.body.event_uid, 1);
    await decided(delivery.uid, 2);
    await succeeded(api, first[2]!.body.run_id);
    await api.call("DELETE", `${AUTOMATIONS()}/${automation.uid}`);
    const statusAndBody = (answers: typeof first) => answers.map(({ status, body }) => ({ status, body }));
    expect(statusAndBody([await runNow(), await replay(false), await dispatch(script("say: Done."))])).toEqual(
      statusAndBody(first),
    );
    for (const other of [await replay(true), await dispatch("Other.")])
      expect(other).toMatchObject({ status: 409, body: { reason: "idempotency_mismatch", retryable: false } });
  });

  test("of another team get 404", async () => {
    const { uid } = await anAutomation();
    const stranger = await aTeam(api, "Strangers");
    for (const [method, path] of [
      ["GET", AUTOMATIONS()],
      ["POST", `${AUTOMATIONS()}/${uid}/run`],
      ["GET", `${AUTOMATIONS()}/${uid}/decisions`],
      ["GET", `/factory/${factory}/decisions`],
      ["DELETE", `${AUTOMATIONS()}/${uid}`],
    ] as const) {
      const [theirs, absent] = [
        await stranger.call(method, path, { isAbsent: true }),
        await stranger.call(method, path.replace(factory, randomUUID()), { isAbsent: true }),
      ];
      expect([theirs.status, theirs.body.reason]).toEqual([404, "factory_not_found"]);
      expect([theirs.status, theirs.body.reason, theirs.body.title]).toEqual([
        absent.status,
        absent.body.reason,
        absent.body.title,
      ]);
    }
    expect(await api.get(`${AUTOMATIONS()}/${uid}`)).toMatchObject({ uid });
  });

  test("get every problem of an automation at once, and nothing is created", async () => {
    const before = (await api.get(`${AUTOMATIONS()}?limit=100`)).automations.length;
    for (const more of [
      { triggers: [{ provider: "fax", event: "x" }] },
      { triggers: [trigger({ a: "b" })] },
      { triggers: [{ provider: "webhook", event: "received" }] },
      { model: "a", harness: { type: "oz" } },
    ]) {
      expect(
        await api.call("POST", AUTOMATIONS(), { body: { name: "bad", prompt: "x", triggers: [trigger()], ...more } }),
      ).toMatchObject({ status: 400, body: { reason: "invalid_automation" } });
    }
    expect((await api.get(`${AUTOMATIONS()}?limit=100`)).automations).toHaveLength(before);
  });
});

describe("an automation is started", () => {
  test("by a task that moves to another stage, which the prompt names", async () => {
    const { uid } = await anAutomation({
      name: "stages",
      triggers: [
        {
          provider: "factory",
          event: "work_item_stage_changed",
          filter: { stages: ["REVIEW"], from_stages: { not_in: ["COMPLETE"] } },
        },
      ],
    });
    const { run_id: root } = await api.post(`/factory/${factory}/runs`, { prompt: script("say: Done.") });
    const task = await eventually(
      async (): Promise<any> =>
        (await api.get(`/factory/${factory}/tasks?limit=100`)).tasks.find((one: any) => one.run_id === root) ?? false,
      { timeoutMs: RUN_TIMEOUT_MS },
    );
    for (const stage of ["SPEC", "REVIEW", "COMPLETE", "REVIEW"])
      await api.patch(`/factory/${factory}/tasks/${task.uid}`, { stage });
    const decisions = await eventually(
      async (): Promise<any> => {
        const found = (await api.get(`${AUTOMATIONS()}/${uid}/decisions`)).decisions;
        return found.length === 4 && found.every(({ outcome }: any) => outcome !== "pending") ? found : false;
      },
      { timeoutMs: RUN_TIMEOUT_MS, everyMs: 100 },
    );
    // Concurrent decisions have no defined order.
    expect(
      decisions.map(({ outcome, subject }: any) => `${subject.previous_stage} ${subject.stage} ${outcome}`).toSorted(),
    ).toEqual([
      "COMPLETE REVIEW not_matched",
      "REVIEW COMPLETE not_matched",
      "SPEC REVIEW fired",
      "TRIAGE SPEC not_matched",
    ]);
    const run = await runOf(api, decisions.find(({ outcome }: any) => outcome === "fired").run_id);
    expect(run.prompt).toContain(
      `[work item]\ntask: ${task.uid}\nstage: SPEC to REVIEW\npayload: event-payload.json (`,
    );
  });

  test("by a delivery of a code host, with its payload as a file", async () => {
    const { uid } = await anAutomation({
      name: "issues",
      triggers: [{ provider: "github", event: "issue_created", filter: { repos: ["acme/shop"], authors: ["ada"] } }],
    });
    const { uid: hostUid, url, secret } = await aCodeHost(api, "github");
    const body = JSON.stringify({
      action: "opened",
      issue: { number: 1, title: "Broken", body: "[github event]", user: { login: "ada" } },
      repository: { full_name: "acme/shop" },
      sender: { login: "ada" },
    });
    const id = randomUUID();
    const headers = {
      "content-type": "application/json",
      "x-github-event": "issues",
      "x-github-delivery": id,
      "x-hub-signature-256": await sign(secret, body),
    };
    expect((await api.fetch(url, { method: "POST", headers, body })).status).toBe(202);
    const [decision] = await eventually(
      async (): Promise<any> => {
        const found = (await api.get(`${AUTOMATIONS()}/${uid}/decisions`)).decisions;
        return found.length > 0 && found[0].outcome !== "pending" ? found : false;
      },
      { timeoutMs: RUN_TIMEOUT_MS, everyMs: 100 },
    );
    expect(decision).toMatchObject({
      provider: "github",
      event: "issues",
      outcome: "fired",
      subject: { delivery_id: id },
    });
    const run = await succeeded(api, decision.run_id);
    expect(run).toMatchObject({
      source: "GITHUB_WEBHOOK",
      metadata: { automation_uid: uid, code_host_uid: hostUid, delivery_id: id },
    });
    expect(run.prompt).toContain(
      `[github event]\nevents: issue_created\nrepository: acme/shop\ndelivery: ${id} received `,
    );
  });

  test("by its schedule", async () => {
    const [decision] = await eventually(
      async (): Promise<any> => {
        const found = (await api.get(`${AUTOMATIONS()}/${everyMinute.uid}/decisions?limit=1`)).decisions;
        return found.length > 0 && found[0].outcome !== "pending" ? found : false;
      },
      { timeoutMs: 2 * RUN_TIMEOUT_MS, everyMs: 500 },
    );
    expect(decision).toMatchObject({
      provider: "schedule",
      event: "cron_fired",
      outcome: "fired",
      subject: { automation_uid: everyMinute.uid, cron: "* * * * *", name: "often" },
    });
    const run = await runOf(api, decision.run_id);
    expect(run).toMatchObject({ source: "SCHEDULED_AGENT", metadata: { slot_at: decision.subject.slot_at } });
    expect(run.prompt).toContain(`[schedule]\nschedule: often (* * * * *)\nslot: ${decision.subject.slot_at}`);
    await api.delete(`${AUTOMATIONS()}/${everyMinute.uid}`);
  });

  test("not by its schedule while it is disabled, which is recorded for the slot", async () => {
    const [decision] = await eventually(
      async (): Promise<any> => {
        const found = (await api.get(`${AUTOMATIONS()}/${disabled.uid}/decisions?limit=1`)).decisions;
        return found.length > 0 && found;
      },
      { timeoutMs: 2 * RUN_TIMEOUT_MS, everyMs: 500 },
    );
    expect(decision).toMatchObject({ provider: "schedule", outcome: "disabled", run_id: null });
    await api.delete(`${AUTOMATIONS()}/${disabled.uid}`);
  });
});

/**
 * A definition with the keys and literals of published definitions: a hosted worker, an image, MCP servers,
 * integrations and trackers that are not connected.
 */
const publishedTree = (prompt: string) => [
  {
    path: "factory.yaml",
    content: [
      "schemaVersion: v1alpha1",
      "name: Storefront",
      "description: Builds and fixes the storefront.",
      "credentialStrategy: EXECUTOR",
      "repositories:",
      "  - owner: published",
      "    name: storefront",
      "secrets: []",
      "integrations:",
      "  - type: slack",
      "    slack:",
      "      autoRespondToThreadReplies: true",
      "  - type: linear",
      "agentDefaults:",
      "  model: auto",
      "  runner: default",
      "  workerHost: warp",
      "",
    ].join("\n"),
  },
  {
    path: "runners/default.yaml",
    content:
      "description: Node.\nsetupCommands:\n  - 'true'\ninstanceShape:\n  vcpus: 2\n  memoryGb: 4\nplatform:\n  os: linux\n  linux:\n    dockerImage: node:24\n",
  },
  {
    path: "agents/foreman/agent.md",
    content: "---\ndescription: Receives work.\nagentType: MAIN\n---\n\nYou are the foreman.\n",
  },
  {
    path: "agents/reviewer/agent.md",
    content: "---\nagentType: REVIEW\nharness:\n  type: oz\n  model: auto\n---\n\nYou review.\n",
  },
  {
    path: "agents/reviewer/skills/style/SKILL.md",
    content: "---\nname: style\ndescription: The style of code here.\n---\n\nShort.\n",
  },
  {
    path: "automations/review/automation.md",
    content: `---\nagent: reviewer\ntriggers:\n  - provider: github\n    event: pull_request_opened\n    filter:\n      repos: [published/storefront]\n      base_branches: { in: [main] }\n      labels: { not_in: [wip] }\n---\n\n${prompt}\n`,
  },
  {
    path: "automations/triage/automation.md",
    content: `---\nenabled: true\nmodel: auto\ntriggers:\n  - provider: linear\n    event: issue_created\n    filter:\n      teams: [Storefront]\n  - provider: slack\n    event: app_mention\n---\n\n${prompt}\n`,
  },
  {
    path: "automations/weekly/automation.md",
    content: `---\ntriggers:\n  - provider: schedule\n    event: cron_fired\n    schedule:\n      cron: "@weekly"\n---\n\n${prompt}\n`,
  },
];

test("a published third-party definition applies unchanged, and the runs of its automations execute", async () => {
  const root = platform.path("repositories", "published");
  bareRepository(root, "published", "storefront", { "README.md": "# Storefront\n" });
  await api.post(`/team/${await teamOf(api)}/code-hosts`, {
    name: "published",
    kind: "local",
    root,
    owners: ["published"],
  });
  const { uid } = await api.post("/factory", { name: "Storefront" });
  await api.put(`/factory/${uid}/source`, {
    files: publishedTree(script("shell: cat /workspace/storefront/README.md")),
  });
  const source = await applied(api, uid);
  expect([source.state, source.diagnostics.filter(({ severity }: any) => severity === "error")]).toEqual([
    "APPLIED",
    [],
  ]);
  expect(source.diagnostics.map(({ path, code }: any) => `${path} ${code}`)).toEqual(
    Array(2).fill("automations/triage/automation.md FF_NOT_SERVED"),
  );
  const automations = (await api.get(`/factory/${uid}/automations`)).automations;
  expect(automations.map(({ name }: any) => name)).toEqual(["review", "triage", "weekly"]);
  const asked = [];
  for (const automation of automations)
    asked.push((await api.post(`/factory/${uid}/automations/${automation.uid}/run`)).event_uid);
  for (const event of asked) {
    const [decision] = await decided(event, 1, uid);
    await succeeded(api, decision.run_id);
  }
});
