/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { eventually, needs } from "@millwright/testing";
import { type Deployment, processesWith } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import {
  eventsOf,
  waitForState,
  RUN_TIMEOUT_MS,
  runOf,
  script,
  waitForEvent,
  shellOutputs,
  spawn,
  startRun,
  succeeded,
} from "./support/runs.ts";
import { aFactory, definitionFiles, teamOf } from "./support/resources.ts";

let platform: Deployment;
let api: Client;
let factory: string;

/** One worker with one slot. The team, the factory and each agent may have one active run at a time. */
beforeAll(async () => {
  platform = await startPlatform({ workers: 1, slots: 1 });
  api = await connect(platform);
  factory = await aFactory(api, definitionFiles("No script here."));
  await api.patch(`/team/${await teamOf(api)}`, { concurrency_limit: 1 });
  await api.patch(`/factory/${factory}`, { concurrency_limit: 1 });
  const { agents } = await api.get(`/agent/identities?factory_uid=${factory}`);
  for (const { uid } of agents) await api.put(`/agent/identities/${uid}`, { concurrency_limit: 1 });
});
afterAll(() => platform?.remove());

const ENDLESS = "shell: {command: sleep 600, timeout_seconds: 900}";
const childrenOf = async (runId: string): Promise<any[]> =>
  (await api.get(`/agent/runs?ancestor_run_id=${runId}&sort_by=created_at&sort_order=asc&limit=100`)).runs;

test("a tree of depth 5 finishes with one slot and every limit at 1, because a waiting parent uses no slot", async () => {
  const agents = ["helper", "foreman", "helper", "foreman"]; // An agent may name agents of the same factory.
  const nested = agents.reduceRight<string>(
    (below, agent) => script(`say: I start the ${agent}.`, spawn(below, agent), "wait: all", "say: It is done."),
    script("say: the deepest"),
  );
  const { run_id: root } = await api.post(`/factory/${factory}/runs`, { prompt: nested });
  await succeeded(api, root);
  const runs = await childrenOf(root);
  expect(runs.map(({ state, root_run_id: of }) => [state, of])).toEqual(Array(4).fill(["SUCCEEDED", root]));
  const parents = new Map(runs.map(({ run_id: id, parent_run_id: parent }) => [id, parent]));
  const depthOf = (id: string): number => (id === root ? 1 : 1 + depthOf(parents.get(id)));
  expect(Math.max(...runs.map(({ run_id: id }) => depthOf(id)))).toBe(5);
  const { tasks } = await api.get(`/factory/${factory}/tasks`);
  expect(tasks.map((task: any) => task.run_id)).toEqual([root]);
});

test("a cancelled tree leaves no active run and frees its slot", async () => {
  const root = await startRun(api, script(spawn(script(ENDLESS)), spawn(script(ENDLESS)), "wait: all"));
  await waitForEvent(api, root, ({ kind }) => kind === "run_waiting");
  const [first] = await childrenOf(root);
  await waitForEvent(api, first.run_id, ({ kind }) => kind === "tool_start");
  await api.post(`/agent/runs/${root}/cancel?tree=true`);
  expect([(await runOf(api, root)).state, ...(await childrenOf(root)).map(({ state }) => state)]).toEqual([
    "CANCELLED",
    "CANCELLED",
    "CANCELLED",
  ]);
  await succeeded(api, await startRun(api, script("say: a slot is free again")));
});

needs(
  "bwrap",
  "a cancelled tree has no remaining process, daemons included, and its ledger gets no row after its end",
  async () => {
    const daemon = 'shell: {command: "setsid sleep 600 >/dev/null 2>&1 & sleep 600", timeout_seconds: 900}';
    const root = await startRun(api, script(spawn(script(spawn(script(daemon)), "wait: all")), "wait: all"));
    const child = await eventually(async () => (await childrenOf(root))[0]?.run_id ?? false, {
      timeoutMs: RUN_TIMEOUT_MS,
    });
    const leaf = await eventually(async () => (await childrenOf(child))[0]?.run_id ?? false, {
      timeoutMs: RUN_TIMEOUT_MS,
    });
    const processesOf = (runId: string): number => processesWith(`MILLWRIGHT_RUN_ID=${runId}`).length;
    // The shell, its command and the daemon.
    await eventually(() => processesOf(leaf) >= 3, { timeoutMs: RUN_TIMEOUT_MS });
    await api.post(`/agent/runs/${root}/cancel?tree=true`);
    const ledgers = [];
    for (const id of [root, child, leaf]) {
      expect((await runOf(api, id)).state).toBe("CANCELLED");
      // The stream ends when the run and all its executions have ended, so that no lease is left.
      const { body } = await api.call("GET", `/agent/runs/${id}/events`, { headers: { accept: "text/event-stream" } });
      expect(body).toMatch(/event: end\ndata: \{\}\n\n$/);
      await eventually(() => processesOf(id) === 0, { timeoutMs: RUN_TIMEOUT_MS });
      ledgers.push([id, await eventsOf(api, id), (await runOf(api, id)).request_usage]);
    }
    await succeeded(api, await startRun(api, script("say: the previous worker continues")));
    for (const [id, events, usage] of ledgers as [string, any[], any][])
      expect([await eventsOf(api, id), (await runOf(api, id)).request_usage]).toEqual([events, usage]);
  },
);

test("a plain cancel leaves the children, and their ends wake no run", async () => {
  // A child that ended by itself could end before its parent waits for it.
  const root = await startRun(api, script(spawn(script(ENDLESS)), "wait: all"));
  await waitForEvent(api, root, ({ kind }) => kind === "run_waiting");
  await api.post(`/agent/runs/${root}/cancel`);
  const events = await eventsOf(api, root);
  const [{ run_id: child }] = await childrenOf(root);
  await waitForEvent(api, child, ({ kind }) => kind === "tool_start");
  await waitForState(api, child, "INPROGRESS");
  await api.post(`/agent/runs/${child}/cancel`);
  await waitForState(api, child, "CANCELLED");
  expect([(await runOf(api, root)).state, await eventsOf(api, root)]).toEqual(["CANCELLED", events]);
});

describe("the sandbox", () => {
  const attempts = [
    ["the platform's data", () => `ls ${platform.path("data")}`],
    ["its own worker's directory on the host", () => `ls ${platform.path("data", "workers")}`],
    ["home directories", () => "cat ~/.ssh/* ~/.bashrc ~/.npmrc /root/.bashrc"],
    ["passwords", () => "cat /etc/shadow"],
    ["processes of the host", () => "test $(ls -d /proc/[0-9]* | wc -l) -gt 20"],
    ["secrets in its environment", () => "env | grep -iE 'mw_|mww_|mwr_|key|token|secret'"],
    ["secrets in other environments", () => "cat /proc/*/environ | tr '\\0' '\\n' | grep -E 'mw_|mww_|mwr_'"],
    [
      "the network",
      () => `node -e "fetch('${platform.url}/healthz').then(() => process.exit(0), () => process.exit(1))"`,
    ],
    ["another network interface", () => "grep -v -e '^ *lo:' -e '|' /proc/net/dev"],
    ["a name server", () => "getent hosts example.com"],
    ["the host's programs, to change them", () => "touch /usr/bin/planted"],
    ["root", () => "test $(id -u) = 0"],
  ] as const;
  needs("bwrap", "sees no host file outside its own, no process, no secret and no network", async () => {
    const steps = attempts.map(
      ([, command]) => `shell: ${JSON.stringify(`(${command()}) >/dev/null 2>&1 && echo REACHED || echo refused`)}`,
    );
    const id = await startRun(api, script(...steps, "shell: echo mine > own.txt && cat own.txt"));
    await succeeded(api, id);
    const outputs = (await shellOutputs(api, id)).map((output) => output.trim());
    expect(attempts.map(([what], index) => `${what}: ${outputs[index]}`)).toEqual(
      attempts.map(([what]) => `${what}: refused`),
    );
    expect(outputs.at(-1)).toBe("mine");
  });
  needs("bwrap", "does not follow a link out of its workspace, with any tool", async () => {
    const id = await startRun(
      api,
      script("shell: ln -s /etc/passwd link.txt && ln -s / root", "read: {path: link.txt}"),
    );
    expect((await waitForState(api, id, "FAILED", "SUCCEEDED")).state).toBe("FAILED");
    for (const step of [
      "read: /etc/passwd",
      "read: ../../etc/passwd",
      "write: {path: /tmp/../etc/x, content: x}",
      "artifact: /etc/passwd",
      "list: /etc",
    ]) {
      expect([step, (await waitForState(api, await startRun(api, script(step)), "FAILED", "SUCCEEDED")).state]).toEqual(
        [step, "FAILED"],
      );
    }
  });
});
