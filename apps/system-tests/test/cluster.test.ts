/* oxlint-disable jest/no-standalone-expect -- needs() declares tests */
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createDemoRepositories } from "@millwright/standalone/demo-repositories";
import { eventually, needs } from "@millwright/testing";
import { connect as connectNats } from "nats";
import { Cluster, SERVICES } from "../src/index.ts";
import { connect, type Client } from "./support/client.ts";
import { eventsOf, RUN_TIMEOUT_MS, script, sees, startRun, succeeded } from "./support/runs.ts";
import { followEvents } from "./support/stream.ts";
import { teamOf } from "./support/world.ts";

const PATIENCE_MS = 3 * RUN_TIMEOUT_MS;

let cluster: Cluster;
let api: Client;
beforeAll(async () => {
  cluster = await Cluster.start({ timeScale: 5 });
  api = await connect(cluster);
}, 180_000);
afterAll(() => cluster?.remove(), 60_000);

/** The example factory, in force, with its repository on a local code host. */
async function theExampleFactory(): Promise<string> {
  const { codeRoot, definitionRepository } = await createDemoRepositories(cluster.path("repositories"), "scripted");
  await api.post(`/team/${await teamOf(api)}/code-hosts`, { name: "local", kind: "local", root: codeRoot });
  const { uid } = await api.post("/factory", { name: "Example" });
  await api.put(`/factory/${uid}/source`, { repository_url: definitionRepository, branch: "main" });
  expect((await api.post(`/factory/${uid}/source/apply`)).source.state).toBe("APPLIED");
  return uid;
}

test("a factory's work ends in one pull request, though an orchestrator is killed in the middle", async () => {
  const factory = await theExampleFactory();
  const { run_id: root } = await api.post(`/factory/${factory}/runs`, { prompt: "The tests of acme/price-list fail.", ticket_ref: "tracker:T-1" });
  await sees(api, root, ({ kind }) => kind === "model_step");
  await cluster.member("orchestrator-0").kill();
  await succeeded(api, root);
  const task = await eventually(async () => {
    const found = await api.get(`/factory/${factory}/task-by-run?run_id=${root}`);
    return found.stage === "REVIEW" && found.outputs.some((one: any) => one.artifact_type === "PULL_REQUEST") ? found : false;
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
}, PATIENCE_MS);

test("any gateway answers, and blobs, streams and links go through whichever takes them", async () => {
  const run = await startRun(api, script("write: {path: a.txt, content: hello}", "artifact: {file: a.txt, public: true}"));
  await succeeded(api, run);
  for (const gateway of [cluster.member("gateway-0"), cluster.member("gateway-1")]) {
    await gateway.kill();
    const { artifacts } = await eventually(() => api.get(`/agent/runs/${run}`));
    const { headers } = await api.call("GET", `/agent/artifacts/${artifacts[0].data.artifact_uid}/download`, { key: null });
    expect(await (await fetch(headers.get("location")!)).text()).toBe("hello");
    expect(await (await fetch(`${cluster.url}/docs`)).text()).toContain("API reference");
    const stream = await api.call("GET", `/agent/runs/${run}/events`, { headers: { accept: "text/event-stream" } });
    expect(stream.body).toContain("event: end");
    gateway.launch();
    await gateway.ready();
  }
}, PATIENCE_MS);

test("200 readers, of a run and of its team, are told exactly what happened while each gateway is killed under them", async () => {
  const run = await startRun(api, script("say: begin"), { interactive: true });
  await sees(api, run, ({ kind }) => kind === "turn_end");
  const headers = { authorization: `Bearer ${api.key}` };
  const ofRun = () => followEvents(`${cluster.url}/api/v1/agent/runs/${run}/events`, headers);
  const ofTeam = () => followEvents(`${cluster.url}/api/v1/agent/events?since=0&run_ids=${run}`, headers, ({ event_type: type }) => type === "run_cancelled");
  const readers = Array.from({ length: 200 }, (_one, n) => (n % 2 === 0 ? ofRun() : ofTeam()));
  for (const gateway of [cluster.member("gateway-0"), cluster.member("gateway-1")]) {
    await eventually(() => api.post(`/agent/runs/${run}/followups`, { message: script(`say: ${gateway.name}`) }, { headers: { "idempotency-key": gateway.name } }));
    await gateway.kill();
    await sees(api, run, ({ kind, payload }) => kind === "model_step" && payload.text === gateway.name);
    gateway.launch();
    await gateway.ready();
  }
  await api.post(`/agent/runs/${run}/cancel`);
  const told = await Promise.all(readers);
  const [events, { events: lifecycle }] = [await eventsOf(api, run), await api.get(`/agent/events?run_ids=${run}`)];
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, index) => index + 1));
  expect(told.filter((_one, n) => n % 2 === 0).filter((one) => !isDeepStrictEqual(one, events))).toEqual([]);
  expect(told.filter((_one, n) => n % 2 === 1).filter((one) => !isDeepStrictEqual(one, lifecycle))).toEqual([]);
}, PATIENCE_MS);

needs("nats-server", "NATS tells outsiders what happens; killed and wiped, it costs time and nothing else", async () => {
  const listen = async () => {
    const nats = await connectNats({ servers: cluster.nats!.url, reconnect: false });
    const heard: any[] = [];
    nats.subscribe("millwright.run.>", { callback: (_error, message) => void heard.push({ ...message.json<object>(), subject: message.subject }) });
    await nats.flush();
    return { nats, heard };
  };
  const first = await listen();
  const before = await startRun(api, script("say: before"));
  await succeeded(api, before);
  await eventually(() => expect(first.heard.filter(({ payload }) => payload.run_uid === before).map(({ subject }) => subject)).toEqual(expect.arrayContaining(["millwright.run.created.v1", "millwright.run.finished.v1"])));
  expect(first.heard.find(({ subject }) => subject === "millwright.run.finished.v1")).toMatchObject({
    type: "millwright.run.finished.v1", entity: "run", entityUid: before, uid: expect.any(String), position: expect.any(String), occurredAt: expect.any(String), payload: { run_uid: before, state: "SUCCEEDED" },
  });
  await first.nats.close();

  await cluster.nats!.wipe();
  const without = await startRun(api, script("say: without"));
  await succeeded(api, without);
  await cluster.nats!.start();
  const second = await listen();
  const after = await startRun(api, script("say: after"));
  await succeeded(api, after);
  await eventually(() => expect(new Set(second.heard.filter(({ subject }) => subject === "millwright.run.finished.v1").map(({ entityUid }) => entityUid))).toEqual(new Set([without, after])), { timeoutMs: 30_000 });
  await second.nats.close();
}, PATIENCE_MS);

test("each process tells how it is, and stops in order", async () => {
  for (const service of SERVICES) {
    for (const url of cluster.opsUrls(service)) {
      expect(await (await fetch(`${url}/readyz`)).json()).toMatchObject({ ready: true });
      expect(await (await fetch(`${url}/metrics`)).text()).toContain("millwright_rpc_requests_total");
      const { keys } = (await (await fetch(`${url}/jwks.json`)).json()) as { keys: { kid: string; d?: string }[] };
      expect(keys.map(({ kid, d }) => [kid.split(".")[0], d])).toContainEqual([service, undefined]);
    }
  }
  expect(await cluster.stop()).toEqual([]);
}, 60_000);
