/* oxlint-disable jest/no-standalone-expect -- needs() declares the test */
import { existsSync, globSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect } from "@jest/globals";
import { eventually, needs } from "@millwright/testing";
import { Cluster } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { eventsOf, script, spawn, startRun, succeeded } from "./support/runs.ts";

/** Unscaled times: the test takes a second or two, and a lease lasts 45 seconds. */
let cluster: Cluster;
let api: Client;

beforeAll(async () => {
  cluster = await Cluster.start({ replicas: 1, workers: 1, hasRelays: true });
  api = await connect(cluster);
});
afterAll(() => cluster?.remove());

/** Returns the path of the agent's workspace on the machine. */
const workspace = (): string | undefined =>
  globSync(cluster.path("data", "workers", "worker-0", "instance-*", "**", "workspace"))[0];

needs(
  "bwrap",
  "Network split or control-plane outage ≤ 30 s: the attempt continues, and the events that it buffered arrive once",
  async () => {
    const runId = await startRun(
      api,
      script(
        "say: before",
        "shell: touch begun; until [ -e go ]; do sleep 0.1; done; touch done",
        spawn(script("say: a child")),
        "wait: all",
        "say: after",
      ),
    );
    const isWritten = (name: string) => existsSync(`${workspace()}/${name}`);
    await eventually(() => isWritten("begun"));
    cluster.relay(0).cut("silence");
    await cluster.member("orchestrator-0").kill();
    writeFileSync(`${workspace()}/go`, "");
    await eventually(() => isWritten("done"));
    cluster.member("orchestrator-0").launch();
    await cluster.member("orchestrator-0").ready();
    cluster.relay(0).repair();
    await succeeded(api, runId);
    const events = await eventsOf(api, runId);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_one, n) => n + 1));
    expect(events.filter(({ kind }) => kind === "worker_lost")).toEqual([]);
    expect(new Set(events.flatMap(({ attempt }) => attempt ?? []))).toEqual(new Set([1]));
    expect((await api.get(`/agent/runs?ancestor_run_id=${runId}`)).runs).toHaveLength(1);
  },
);
