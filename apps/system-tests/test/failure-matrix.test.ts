/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { eventually, needs } from "@millwright/testing";
import { type Deployment, processesWith, Program, Relay } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { TestWorker } from "./support/test-worker.ts";
import { eventsOf, runOf, script, waitForEvent, shellOutputs, spawn, startRun, succeeded } from "./support/runs.ts";
import { teamOf } from "./support/resources.ts";

/** Divisor of the platform's lease durations and timeouts. */
const TIME_SCALE = 15;
/**
 * A run must have a new attempt this long after its worker was lost. At this time scale most of it is reserve for a
 * busy machine.
 */
const BOUND_MS = 60_000;

let platform: Deployment;
let api: Client;
let workerKey: string;
/** The relay between the workers and the platform. */
let relay: Relay;
const workers = new Map<string, Program>();

beforeAll(async () => {
  platform = await startPlatform({ workers: 0, timeScale: TIME_SCALE });
  api = await connect(platform);
  workerKey = (await api.post(`/team/${await teamOf(api)}/keys`, { name: "workers", kind: "worker" })).api_key;
  relay = await Relay.to(platform.url);
});
afterEach(() => {
  relay.repair();
  return stopWorkers();
});
afterAll(async () => {
  await stopWorkers();
  await relay?.close();
  await platform?.remove();
});

function startWorker(name: string): void {
  const env = {
    MILLWRIGHT_URL: relay.url,
    MILLWRIGHT_WORKER_KEY: workerKey,
    MILLWRIGHT_WORKER_ID: name,
    MILLWRIGHT_WORKER_DIR: platform.path(`worker-${name}`),
    MILLWRIGHT_SANDBOX: "bwrap",
    MILLWRIGHT_LOCAL_REPOSITORY_ROOTS: platform.path("repositories"),
  };
  workers.set(name, new Program("worker/src/main.ts", { log: platform.path(`worker-${name}.log`), env }));
}
async function stopWorkers(): Promise<void> {
  await Promise.all([...workers.values()].map((worker) => worker.kill()));
  workers.clear();
}
/** Returns the workers that have claimed the run, the current one last. */
const holders = async (runId: string): Promise<string[]> =>
  (await eventsOf(api, runId)).filter(({ kind }) => kind === "run_claimed").map(({ payload }) => payload.worker_host);
const isClaimedBy = (runId: string, name: string) =>
  eventually(async () => (await holders(runId)).at(-1) === name, { timeoutMs: BOUND_MS, everyMs: 100 });
const sleeps = (runId: string, attempt: number) =>
  waitForEvent(
    api,
    runId,
    ({ kind, payload, attempt: of }) => kind === "tool_start" && payload.input.command === "sleep 5" && of === attempt,
  );
const commandsOf = async (runId: string): Promise<string[]> =>
  (await eventsOf(api, runId))
    .filter(({ kind, payload }) => kind === "tool_start" && payload.name === "run_command")
    .map(({ payload }) => payload.input.command);
const sandboxProcesses = (runId: string): number[] => processesWith(`MILLWRIGHT_RUN_ID=${runId}`).map(({ pid }) => pid);

/** Starts a run and waits until it executes a command. Returns it with its worker and its processes. */
async function startClaimedRun(...after: string[]) {
  for (const name of ["one", "two"]) startWorker(name);
  const runId = await startRun(
    api,
    script(
      "say: begin",
      "shell: echo one >> out.txt",
      "write: {path: note.txt, content: two}",
      "shell: sleep 5",
      ...after,
    ),
  );
  await sleeps(runId, 1);
  const [holder] = await holders(runId);
  const processes = sandboxProcesses(runId);
  expect(processes.length).toBeGreaterThan(0);
  return { runId, holder: workers.get(holder!)!, other: holder === "one" ? "two" : "one", processes };
}

describe("the failure matrix, with processes", () => {
  needs(
    "bwrap",
    "Worker dies while RUNNING: another worker resumes the run in time without repeating a finished step, and no process of the lost attempt survives",
    async () => {
      const { runId, holder, other, processes } = await startClaimedRun(
        "shell: cat out.txt note.txt",
        "artifact: out.txt",
      );
      await holder.kill();
      await isClaimedBy(runId, other);
      await eventually(() => !sandboxProcesses(runId).some((pid) => processes.includes(pid)));
      const { artifacts } = await succeeded(api, runId);
      expect(artifacts.map(({ data }: any) => data.filename)).toEqual(["out.txt"]);
      expect(await commandsOf(runId)).toEqual(["echo one >> out.txt", "sleep 5", "sleep 5", "cat out.txt note.txt"]);
      expect((await shellOutputs(api, runId)).at(-1)).toBe("one\ntwo");
      const starts = (await eventsOf(api, runId)).filter(({ kind }) => kind === "tool_start");
      expect(
        starts
          .filter(({ payload }) => payload.repeated)
          .map(({ attempt, payload }) => [attempt, payload.input.command]),
      ).toEqual([[2, "sleep 5"]]);
      expect((await eventsOf(api, runId)).filter(({ kind }) => kind === "worker_lost")).toHaveLength(1);
    },
  );

  needs(
    "bwrap",
    "Worker frozen, then wakes: another worker has the lease in time; after waking, the frozen worker writes nothing, ends its processes and accepts new runs",
    async () => {
      const { runId, holder, other, processes } = await startClaimedRun("artifact: out.txt");
      holder.signal("SIGSTOP");
      await isClaimedBy(runId, other);
      await sleeps(runId, 2);
      holder.signal("SIGCONT");
      await eventually(() => !sandboxProcesses(runId).some((pid) => processes.includes(pid)));
      const { artifacts } = await succeeded(api, runId);
      expect(artifacts).toHaveLength(1);
      const events = await eventsOf(api, runId);
      const lostAt = events.findIndex(({ kind }) => kind === "worker_lost");
      expect(events.slice(lostAt).filter(({ attempt }) => attempt === 1)).toEqual([]);
      const [thawed] = await holders(runId);
      await succeeded(api, await startRun(api, script("say: I am back."), { config: { worker_host: thawed } }));
    },
  );

  needs(
    "bwrap",
    "Worker dies in SETUP: the run is set up once more elsewhere, and nothing of it survives on the dead worker",
    async () => {
      for (const name of ["one", "two"]) startWorker(name);
      const environment = await api.post("/agent/environments", {
        config: { name: "slow", setup_commands: ["sleep 5"] },
      });
      const runId = await startRun(api, script("say: set up"), { config: { environment_id: environment.uid } });
      await eventually(() => sandboxProcesses(runId).length > 0);
      const processes = sandboxProcesses(runId);
      const [holder] = await holders(runId);
      await workers.get(holder!)!.kill();
      await isClaimedBy(runId, holder === "one" ? "two" : "one");
      await eventually(() => !sandboxProcesses(runId).some((pid) => processes.includes(pid)));
      await succeeded(api, runId);
      const events = await eventsOf(api, runId);
      expect(events.filter(({ kind }) => kind === "worker_lost").length).toBeGreaterThanOrEqual(1);
      expect(events.find(({ kind, payload }) => kind === "run_queued" && payload.reason === "restarted")).toBeDefined();
    },
  );

  needs(
    "bwrap",
    "Outage 30 s – 10 min: a worker that lost its lease stops the attempt and continues with the next one; requests blocked by its outbound gate take effect once",
    async () => {
      startWorker("one");
      const runId = await startRun(
        api,
        script("say: begin", "shell: sleep 5", spawn(script("say: a child")), "wait: all", "say: end"),
      );
      await sleeps(runId, 1);
      const processes = sandboxProcesses(runId);
      relay.cut("silence");
      await waitForEvent(api, runId, ({ kind }) => kind === "worker_lost");
      relay.repair();
      await eventually(() => !sandboxProcesses(runId).some((pid) => processes.includes(pid)));
      await succeeded(api, runId);
      const events = await eventsOf(api, runId);
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_one, n) => n + 1));
      expect((await api.get(`/agent/runs?ancestor_run_id=${runId}`)).runs).toHaveLength(1);
    },
  );
});

test("Worker frozen, then wakes: a worker that lost its lease is rejected everywhere, and its run's token is revoked", async () => {
  const late = await TestWorker.register(api, "late");
  const runId = await startRun(api, script("say: x"));
  const lease = (await late.accept(await late.offer()))!;
  await late.start(lease);
  await waitForEvent(api, runId, ({ kind }) => kind === "worker_lost");
  const next = await TestWorker.register(api, "next");
  const taken = (await next.accept(await next.offer()))!;
  expect([taken.runUid, taken.executionId, taken.attempt]).toEqual([runId, lease.executionId, 2]);
  await next.start(taken);

  const everything = async () => [{ ...(await runOf(api, runId)), run_time: "passes" }, await eventsOf(api, runId)];
  const before = await everything();
  const mine = { executionId: lease.executionId, attempt: lease.attempt };
  expect(await late.append(lease, 3, "message", { role: "assistant", text: "late" })).toBe("LEASE_LOST");
  expect((await late.heartbeat(lease)).status).toBe("LOST");
  expect((await late.call("Accept", { leases: [mine] })).assignments ?? []).toEqual([]);
  const writes: [string, object][] = [
    ["Complete", { completions: [{ ...mine, outcome: "DONE", lastClientSeq: "2" }] }],
    ["ReportUsage", { ...mine, callId: "c", modelId: "scripted", usage: { inputTokens: "1" } }],
    ["CreateArtifact", { ...mine, clientArtifactId: "a", artifactType: "PLAN", data: { title: "t" }, content: "eA==" }],
    ["PutSnapshot", { ...mine, sizeBytes: "1", sha256: "0".repeat(64) }],
    [
      "OpenPullRequest",
      {
        ...mine,
        owner: "o",
        repo: "r",
        headBranch: "agent/x",
        headSha: "0".repeat(40),
        baseBranch: "main",
        title: "t",
      },
    ],
    ["ReadHistory", { ...mine, afterSeq: "0" }],
  ];
  for (const [method, request] of writes) {
    const answer = await late.call(method, request).then(
      (given) => JSON.stringify(given),
      (error: Error) => error.message,
    );
    expect([method, answer]).toEqual([method, expect.stringMatching(/lease_lost/i)]);
  }
  for (const [method, path, body] of [
    ["GET", "/whoami"],
    ["POST", "/agent/runs", { prompt: "late" }],
    ["GET", `/agent/runs/${runId}`],
  ] as const) {
    expect((await api.call(method, path, { key: lease.runToken, body })).status).toBe(401);
  }
  expect((await api.call("GET", "/whoami", { key: taken.runToken })).status).toBe(200);
  expect(await everything()).toEqual(before);
  await next.complete(taken, "DONE");
});
