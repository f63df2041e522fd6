/* oxlint-disable jest/no-standalone-expect -- needs() declares tests */
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { sign } from "@octokit/webhooks-methods";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createDemoRepositories } from "@millwright/standalone/demo-repositories";
import { aFakeHarness, eventually, ModelServer, needs } from "@millwright/testing";
import { connect as connectNats } from "nats";
import {
  bareRepository,
  Cluster,
  git,
  newDirectory,
  pushFiles,
  removeDirectory,
  SERVICES,
} from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { DispatchingWorker } from "./support/dispatching-worker.ts";
import { eventsOf, RUN_TIMEOUT_MS, script, waitForEvent, shellOutputs, startRun, succeeded } from "./support/runs.ts";
import { followEvents } from "./support/stream.ts";
import { aCodeHost, aFactory, applied, aTeam, definitionFiles, settled, teamOf, treeOf } from "./support/resources.ts";

const PATIENCE_MS = 3 * RUN_TIMEOUT_MS;

let cluster: Cluster;
let api: Client;
let models: ModelServer;
let harnesses: string;
/** A factory with automations. The first scheduled time of `everyMinute` comes while other tests run. */
let [works, everyMinute]: string[] = [];

beforeAll(async () => {
  models = await ModelServer.start([{ text: "hello", usage: { input: 100, output: 10 } }]);
  harnesses = await newDirectory();
  const env = {
    MILLWRIGHT_HARNESS_CLAUDE: await aFakeHarness(harnesses, "claude"),
    MILLWRIGHT_BRANCH_POLL_INTERVAL: "500ms",
  };
  cluster = await Cluster.start({ timeScale: 2, env });
  api = await connect(cluster);
  works = await aFactory(api, definitionFiles(script("say: Done.")));
  everyMinute = await anAutomation({
    provider: "schedule",
    event: "cron_fired",
    schedule: { cron: "* * * * *", name: "often" },
  });
});
afterAll(async () => {
  await cluster?.remove();
  await models?.stop();
  if (harnesses) await removeDirectory(harnesses);
});

const anAutomation = async (trigger: object, prompt = script("say: Done.")): Promise<string> =>
  (await api.post(`/factory/${works}/automations`, { name: "auto", prompt, triggers: [trigger] })).uid;
/** Returns the decisions of an automation once there is at least one and none is pending. */
const decided = (automation: string): Promise<any[]> =>
  eventually(
    async () => {
      const { decisions } = await api.get(`/factory/${works}/automations/${automation}/decisions?limit=100`);
      return decisions.length > 0 && decisions.every(({ outcome }: any) => outcome !== "pending") ? decisions : false;
    },
    { timeoutMs: PATIENCE_MS, everyMs: 250 },
  );

/** Creates and applies the example factory, with its repository on a local code host. */
async function theExampleFactory(): Promise<string> {
  const { codeRoot, definitionRepository } = await createDemoRepositories(cluster.path("repositories"), "scripted");
  await api.post(`/team/${await teamOf(api)}/code-hosts`, { name: "local", kind: "local", root: codeRoot });
  const { uid } = await api.post("/factory", { name: "Example" });
  await api.put(`/factory/${uid}/source`, { repository_url: definitionRepository, branch: "main" });
  expect((await applied(api, uid)).state).toBe("APPLIED");
  return uid;
}

test(
  "the work of a factory ends in one pull request although an orchestrator is killed in the middle",
  async () => {
    const factory = await theExampleFactory();
    const { run_id: root } = await api.post(`/factory/${factory}/runs`, {
      prompt: "The tests of acme/price-list fail.",
      ticket_ref: "tracker:T-1",
    });
    await waitForEvent(api, root, ({ kind }) => kind === "model_step");
    await cluster.member("orchestrator-0").kill();
    await succeeded(api, root);
    const task = await eventually(async () => {
      const found = await api.get(`/factory/${factory}/task-by-run?run_id=${root}`);
      return found.stage === "REVIEW" && found.outputs.some((one: any) => one.artifact_type === "PULL_REQUEST")
        ? found
        : false;
    });
    const pullRequests = task.outputs.filter((one: any) => one.artifact_type === "PULL_REQUEST");
    expect(pullRequests).toHaveLength(1);
    const [implementer, ...others] = (await api.get(`/agent/runs?ancestor_run_id=${root}`)).runs;
    expect([implementer.state, others]).toEqual(["SUCCEEDED", []]);
    const diff = await fetch(`${pullRequests[0].data.url}.diff${new URL(implementer.session_link).search}`);
    expect(await diff.text()).toContain("quantity >= BULK_QUANTITY");
    const seqs = (await eventsOf(api, root)).map(({ seq }) => seq);
    expect(seqs).toEqual(seqs.map((_seq, index) => index + 1));
    cluster.member("orchestrator-0").launch();
    await cluster.member("orchestrator-0").ready();
  },
  PATIENCE_MS,
);

test(
  "any gateway serves every request, including blobs, streams and links",
  async () => {
    const run = await startRun(
      api,
      script("write: {path: a.txt, content: hello}", "artifact: {file: a.txt, public: true}"),
    );
    await succeeded(api, run);
    for (const gateway of [cluster.member("gateway-0"), cluster.member("gateway-1")]) {
      await gateway.kill();
      const { artifacts } = await eventually(() => api.get(`/agent/runs/${run}`));
      const { headers } = await api.call("GET", `/agent/artifacts/${artifacts[0].data.artifact_uid}/download`, {
        key: null,
      });
      expect(await (await fetch(headers.get("location")!)).text()).toBe("hello");
      expect(await (await fetch(`${cluster.url}/docs`)).text()).toContain("API reference");
      const stream = await api.call("GET", `/agent/runs/${run}/events`, { headers: { accept: "text/event-stream" } });
      expect(stream.body).toContain("event: end");
      gateway.launch();
      await gateway.ready();
    }
  },
  PATIENCE_MS,
);

test(
  "200 stream readers of a run and of its team receive every event exactly once while each gateway is killed",
  async () => {
    const run = await startRun(api, script("say: begin"), { interactive: true });
    await waitForEvent(api, run, ({ kind }) => kind === "turn_end");
    const headers = { authorization: `Bearer ${api.key}` };
    const ofRun = () => followEvents(`${cluster.url}/api/v1/agent/runs/${run}/events`, headers);
    const ofTeam = () =>
      followEvents(
        `${cluster.url}/api/v1/agent/events?since=0&run_ids=${run}`,
        headers,
        ({ event_type: type }) => type === "run_cancelled",
      );
    const readers = Array.from({ length: 200 }, (_one, n) => (n % 2 === 0 ? ofRun() : ofTeam()));
    for (const gateway of [cluster.member("gateway-0"), cluster.member("gateway-1")]) {
      await eventually(() =>
        api.post(
          `/agent/runs/${run}/followups`,
          { message: script(`say: ${gateway.name}`) },
          { headers: { "idempotency-key": gateway.name } },
        ),
      );
      await gateway.kill();
      await waitForEvent(api, run, ({ kind, payload }) => kind === "model_step" && payload.text === gateway.name);
      gateway.launch();
      await gateway.ready();
    }
    await api.post(`/agent/runs/${run}/cancel`);
    const received = await Promise.all(readers);
    const [events, { events: lifecycle }] = [await eventsOf(api, run), await api.get(`/agent/events?run_ids=${run}`)];
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, index) => index + 1));
    expect(received.filter((_one, n) => n % 2 === 0).filter((one) => !isDeepStrictEqual(one, events))).toEqual([]);
    expect(received.filter((_one, n) => n % 2 === 1).filter((one) => !isDeepStrictEqual(one, lifecycle))).toEqual([]);
  },
  PATIENCE_MS,
);

test(
  "a delivery sent to each ingress replica concurrently starts one run with the unchanged payload",
  async () => {
    const webhook = await api.post(`/factory/${works}/webhooks`, { name: "ci" });
    const automation = await anAutomation(
      { provider: "webhook", event: "received", filter: { webhook_ids: [webhook.uid], payload: { kind: ["alert"] } } },
      script("shell: cp .attachments/*/event-payload.json got.json", "artifact: got.json"),
    );
    const body = '{"kind":"alert", "n":1.0}';
    const id = randomUUID();
    const urls = cluster.ingressUrls().map((url) => url + new URL(webhook.ingress_url).pathname);
    const send = (_one: unknown, n: number) =>
      fetch(urls[n % urls.length]!, {
        method: "POST",
        headers: { authorization: `Bearer ${webhook.secret}`, "x-service-delivery-id": id },
        body,
      });
    expect((await Promise.all(Array.from({ length: 8 }, send))).map(({ status }) => status)).toEqual(
      Array(8).fill(202),
    );
    const decisions = await decided(automation);
    expect(decisions).toMatchObject([{ outcome: "fired", subject: { delivery_id: id } }]);
    const { artifacts } = await succeeded(api, decisions[0].run_id);
    const { download_url: url } = (await api.get(`/agent/artifacts/${artifacts[0].data.artifact_uid}`)).data;
    expect((await api.fetch(url)).text).toBe(body);
    expect(
      (await api.get(`/agent/runs?factory_uid=${works}&metadata[automation_uid]=${automation}`)).runs.map(
        ({ run_id: run }: any) => run,
      ),
    ).toEqual([decisions[0].run_id]);
  },
  PATIENCE_MS,
);

test(
  "a delivery of a code host starts a run",
  async () => {
    const automation = await anAutomation({
      provider: "github",
      event: "issue_created",
      filter: { repos: ["acme/shop"] },
    });
    const { uid: hostUid, url, secret } = await aCodeHost(api, "github");
    const body = JSON.stringify({
      action: "opened",
      issue: { number: 1, title: "Broken", user: { login: "ada" } },
      repository: { full_name: "acme/shop" },
      sender: { login: "ada" },
    });
    const headers = {
      "content-type": "application/json",
      "x-github-event": "issues",
      "x-github-delivery": randomUUID(),
      "x-hub-signature-256": await sign(secret, body),
    };
    const sent = cluster
      .ingressUrls()
      .map((ingress) => fetch(ingress + new URL(url).pathname, { method: "POST", headers, body }));
    expect((await Promise.all(sent)).map(({ status }) => status)).toEqual([202, 202]);
    const decisions = await decided(automation);
    expect(decisions).toMatchObject([{ provider: "github", outcome: "fired" }]);
    expect(await succeeded(api, decisions[0].run_id)).toMatchObject({
      source: "GITHUB_WEBHOOK",
      metadata: { automation_uid: automation, code_host_uid: hostUid },
    });
  },
  PATIENCE_MS,
);

test(
  "a push to a tracked branch is detected, and applied once by many concurrent requests",
  async () => {
    const bare = bareRepository(
      cluster.path("repositories"),
      "acme",
      "definition",
      treeOf(definitionFiles(script("say: First."))),
    );
    const { uid } = await api.post("/factory", { name: "Tracked" });
    await api.put(`/factory/${uid}/source`, { repository_url: bare });
    const [{ uid: branch }] = (await api.get(`/factory/${uid}/branches`)).branches;
    const registered = (sha: string) =>
      eventually(
        async () => expect((await api.get(`/factory/${uid}/branches/${branch}`)).registered_head_sha).toBe(sha),
        { timeoutMs: PATIENCE_MS },
      );
    const first = git(bare, "rev-parse", "main").trim();
    await registered(first);
    const apply = async () => {
      const received = await api.post(`/factory/${uid}/branches/${branch}/apply`);
      await settled(api, uid);
      return received;
    };
    const status = () => api.get(`/factory/${uid}/branches/${branch}`);
    for (const answer of await Promise.all([apply(), apply(), apply(), apply()]))
      expect(answer).toMatchObject({ freshness: "CURRENT", applied_sha: first });
    expect(await status()).toMatchObject({ freshness: "CURRENT", applied_sha: first, is_serving: true });
    await registered(
      pushFiles(bare, { "agents/foreman/agent.md": definitionFiles(script("say: Second."))[1]!.content }),
    );
    expect(await status()).toMatchObject({ freshness: "STALE", applied_sha: first });
    await apply();
    expect((await api.get(`/factory/${uid}/source`)).active_version).toBe(2);
    const { run_id: run } = await api.post(`/factory/${uid}/runs`, { prompt: "Go." });
    await succeeded(api, run);
    expect(JSON.stringify(await api.get(`/agent/runs/${run}/conversation`))).toContain("Second.");
  },
  PATIENCE_MS,
);

needs(
  "bwrap",
  "a run of a third-party agent program continues its session on any worker",
  async () => {
    const other = await aTeam(api, "Programs");
    const secrets = `/team/${await teamOf(other)}/secrets`;
    await other.put(`${secrets}/ANTHROPIC_API_KEY`, { value: "a-key" });
    await other.put(`${secrets}/ANTHROPIC_BASE_URL`, { value: models.url });
    const run = await startRun(other, ["say I begin.", "bash echo kept > kept.txt", "model"].join("\n"), {
      config: { harness: { type: "claude" } },
    });
    const { agent_config: config, request_usage: usage } = await succeeded(other, run);
    expect([config.harness, usage.total_tokens]).toEqual([{ type: "claude" }, 110]);
    await other.post(`/agent/runs/${run}/followups`, { message: ["heard More", "bash cat kept.txt"].join("\n") });
    const transcript = await eventually(
      async () => {
        const text = JSON.stringify(await other.get(`/agent/runs/${run}/conversation`));
        return text.includes("heard More") && text.includes("kept\\n") && text;
      },
      { timeoutMs: PATIENCE_MS },
    );
    for (const part of ["I begin.", 'The model said \\"hello\\"']) expect(transcript).toContain(part);
    await succeeded(other, run);
    expect(await other.get(`/agent/runs/${run}/harness-usage`)).toMatchObject({
      available: true,
      usage: { harness: "CLAUDE_CODE", snapshot: { payload: { toolCalls: { total: 2 } } } },
    });
  },
  PATIENCE_MS,
);

test("a dispatched run has a machine of its own although the dispatching worker and an orchestrator are killed", async () => {
  const dispatcher = await DispatchingWorker.start(cluster, api);
  try {
    const go = cluster.path("go");
    const run = await startRun(
      api,
      script(`shell: until test -e '${go}'; do sleep 0.1; done; echo went on`, "say: Done."),
      { config: { worker_host: "depot" } },
    );
    await waitForEvent(api, run, ({ kind }) => kind === "tool_start");
    const orchestrator = cluster.member("orchestrator-1");
    await Promise.all([dispatcher.kill(), orchestrator.kill()]);
    orchestrator.launch();
    await orchestrator.ready();
    await dispatcher.launch();
    writeFileSync(go, "");
    await succeeded(api, run);
    expect(await shellOutputs(api, run)).toEqual(["went on\n"]);
    await eventually(() => dispatcher.machinesOf(run) === 0, { timeoutMs: PATIENCE_MS });
  } finally {
    await dispatcher.remove();
  }
});

test(
  "a schedule fires each of its slots once",
  async () => {
    const decisions = await decided(everyMinute!);
    await api.delete(`/factory/${works}/automations/${everyMinute}`);
    expect(new Set(decisions.map(({ subject }) => subject.slot_at)).size).toBe(decisions.length);
    for (const { outcome, run_id: run } of decisions) {
      expect(outcome).toBe("fired");
      expect(await succeeded(api, run)).toMatchObject({
        source: "SCHEDULED_AGENT",
        metadata: { automation_uid: everyMinute },
      });
    }
  },
  PATIENCE_MS,
);

needs(
  "nats-server",
  "NATS publishes lifecycle events; if it is killed and its data deleted, events are late but not lost",
  async () => {
    const listen = async () => {
      const nats = await connectNats({ servers: cluster.nats!.url, reconnect: false });
      const received: any[] = [];
      nats.subscribe("millwright.run.>", {
        callback: (_error, message) => void received.push({ ...message.json<object>(), subject: message.subject }),
      });
      await nats.flush();
      return { nats, received };
    };
    const first = await listen();
    const before = await startRun(api, script("say: before"));
    await succeeded(api, before);
    await eventually(
      () =>
        expect(
          first.received.filter(({ payload }) => payload.run_uid === before).map(({ subject }) => subject),
        ).toEqual(expect.arrayContaining(["millwright.run.created.v1", "millwright.run.finished.v1"])),
      { timeoutMs: RUN_TIMEOUT_MS },
    );
    expect(
      first.received.find(({ subject, entityUid }) => subject === "millwright.run.finished.v1" && entityUid === before),
    ).toMatchObject({
      type: "millwright.run.finished.v1",
      entity: "run",
      entityUid: before,
      uid: expect.any(String),
      position: expect.any(String),
      occurredAt: expect.any(String),
      payload: { run_uid: before, state: "SUCCEEDED" },
    });
    await first.nats.close();

    await cluster.nats!.wipe();
    const without = await startRun(api, script("say: without"));
    await succeeded(api, without);
    await cluster.nats!.start();
    const second = await listen();
    const after = await startRun(api, script("say: after"));
    await succeeded(api, after);
    await eventually(
      () =>
        expect(
          second.received
            .filter(({ subject }) => subject === "millwright.run.finished.v1")
            .map(({ entityUid }) => entityUid),
        ).toEqual(expect.arrayContaining([without, after])),
      { timeoutMs: RUN_TIMEOUT_MS },
    );
    await second.nats.close();
  },
  PATIENCE_MS,
);

test("each process reports its health and stops gracefully", async () => {
  for (const service of SERVICES) {
    for (const url of cluster.opsUrls(service)) {
      expect(await (await fetch(`${url}/readyz`)).json()).toMatchObject({ ready: true });
      expect(await (await fetch(`${url}/metrics`)).text()).toContain("millwright_rpc_requests_total");
      const { keys } = (await (await fetch(`${url}/jwks.json`)).json()) as { keys: { kid: string; d?: string }[] };
      expect(keys.map(({ kid, d }) => [kid.split(".")[0], d])).toContainEqual([service, undefined]);
    }
  }
  expect(await cluster.stop()).toEqual([]);
});
