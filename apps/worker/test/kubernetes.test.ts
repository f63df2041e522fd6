import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { create } from "@bufbuild/protobuf";
import { systemClock } from "@millwright/clock";
import { worker } from "@millwright/contracts";
import { createLogger } from "@millwright/telemetry";
import { eventually } from "@millwright/testing";
import type { Machine } from "../src/backends/backend.ts";
import { openCluster } from "../src/backends/kubernetes/cluster.ts";
import { kubernetesBackend } from "../src/backends/kubernetes/kubernetes-backend.ts";
import { jobName } from "../src/backends/kubernetes/manifests.ts";
import { kubernetesSettings } from "../src/backends/kubernetes/settings.ts";
import { startDispatcher } from "../src/compose-dispatcher.ts";
import { loadConfig } from "../src/config.ts";
import { systemTimers } from "../src/time/timers.ts";
import { FakePlatform, WORKER_KEY } from "./fake-platform.ts";
import { FakeCluster } from "./support/fake-cluster.ts";
import { anOrder, deployedOfKind, OFFER, OWNER, STARTED_MS } from "./support/kubernetes.ts";

const machineOf = ({ executionId, attempt, runUid }: worker.DispatchedExecution): Machine => ({
  executionId,
  attempt,
  runUid,
  startedMs: STARTED_MS,
});
const log = createLogger({ service: "worker", level: "silent" });

let cluster: FakeCluster;
let dir: string;
beforeEach(async () => {
  cluster = await new FakeCluster().start();
  dir = await mkdtemp(join(tmpdir(), "millwright-kubernetes-"));
  await writeFile(join(dir, "kubeconfig"), cluster.kubeconfig());
});
afterEach(async () => {
  await cluster.stop();
  await rm(dir, { recursive: true, force: true });
});

async function openBackend(env: Record<string, string> = {}, owner: typeof OWNER = OWNER) {
  const settings = kubernetesSettings({
    MILLWRIGHT_KUBERNETES_IMAGE: "worker:1",
    MILLWRIGHT_KUBERNETES_KUBECONFIG: join(dir, "kubeconfig"),
    ...env,
  });
  return kubernetesBackend({
    cluster: await openCluster(settings),
    owner,
    settings,
    clock: systemClock,
    timers: systemTimers,
    log,
    retryMs: 20,
  });
}
const NAME = jobName({ executionId: 7n, attempt: 2 }, OWNER);

describe("starting a Job", () => {
  test("creates the Job and its Secret with the offer, which the Job owns", async () => {
    await (await openBackend()).start(anOrder(), STARTED_MS);
    expect([...cluster.jobs.keys()]).toEqual([NAME]);
    expect(cluster.secrets.get(NAME)).toMatchObject({
      stringData: { offer: OFFER },
      metadata: { ownerReferences: [{ uid: cluster.jobs.get(NAME)!.metadata.uid, kind: "Job" }] },
    });
    expect(NAME).toMatch(/^millwright-7-2-[0-9a-f]{8}$/);
  });

  test.each([
    ["whose answer was lost is made once", /create jobs/, 500, "after"],
    ["that the cluster is too busy for is requested again", /create jobs/, 429, "before"],
    ["whose secret was refused for a moment gets it", /create secrets/, 500, "before"],
    ["whose Secret was created without a response retains it", /create secrets/, 500, "after"],
  ] as const)("%s", async (_what, match, status, when) => {
    cluster.failNext(match, status, { when, times: 2 });
    await (await openBackend()).start(anOrder(), STARTED_MS);
    expect([[...cluster.jobs.keys()], [...cluster.secrets.keys()]]).toEqual([[NAME], [NAME]]);
  });

  test("that the cluster rejects is not retried, and reports why", async () => {
    cluster.failNext(/create jobs/, 403, { message: 'jobs.batch is forbidden: exceeded quota "runs"' });
    await expect((await openBackend()).start(anOrder(), STARTED_MS)).rejects.toMatchObject({
      reason: "job_create",
      message: 'The cluster rejected the Job: jobs.batch is forbidden: exceeded quota "runs"',
    });
    expect(cluster.asked).toEqual(["create jobs"]);
  });

  test("that never succeeds is a failure without the library's words", async () => {
    cluster.failNext(/create jobs/, 500, { times: 50 });
    await expect((await openBackend()).start(anOrder(), STARTED_MS)).rejects.toMatchObject({
      reason: "job_create",
      message: "The Job could not be requested from the cluster.",
    });
  });

  test("with the name of another owner is not adopted", async () => {
    cluster.jobs.set(NAME, { metadata: { name: NAME, uid: "other", labels: {} } });
    await expect((await openBackend()).start(anOrder(), STARTED_MS)).rejects.toMatchObject({
      reason: "job_create",
      message: expect.stringContaining("A Job of another execution has the same name."),
    });
    expect(cluster.secrets.size).toBe(0);
  });
});

describe("a pod", () => {
  const container = (state: object) => ({ containerStatuses: [{ name: "worker", image: "worker:1", state }] });
  const unscheduled = (ago: number) => ({
    phase: "Pending",
    conditions: [
      {
        type: "PodScheduled",
        status: "False",
        reason: "Unschedulable",
        message: "0/3 nodes are available.",
        lastTransitionTime: new Date(Date.now() - ago).toISOString(),
      },
    ],
  });
  const FAULTS: [what: string, status: object, reason: string | undefined, pattern: RegExp][] = [
    [
      "that waits for its image",
      { phase: "Pending", ...container({ waiting: { reason: "ContainerCreating" } }) },
      undefined,
      /^/,
    ],
    [
      "whose image cannot be pulled",
      {
        phase: "Pending",
        ...container({ waiting: { reason: "ImagePullBackOff", message: "Back-off pulling image" } }),
      },
      "image_pull",
      /worker:1.*ImagePullBackOff.*Back-off/,
    ],
    [
      "whose image has no name",
      { phase: "Pending", ...container({ waiting: { reason: "InvalidImageName" } }) },
      "image_pull",
      /InvalidImageName/,
    ],
    [
      "whose container cannot be made",
      {
        phase: "Pending",
        ...container({ waiting: { reason: "CreateContainerConfigError", message: "runAsNonRoot" } }),
      },
      "container_create",
      /runAsNonRoot/,
    ],
    ["that has waited for a node for a short while", unscheduled(1_000), undefined, /^/],
    ["that no node can take", unscheduled(3_600_000), "unschedulable", /0\/3 nodes are available\.$/],
    [
      "that was evicted",
      { phase: "Failed", reason: "Evicted", message: "The node was low on resource: memory." },
      "evicted",
      /low on resource: memory\.$/,
    ],
    [
      "that was preempted",
      {
        phase: "Failed",
        conditions: [
          { type: "DisruptionTarget", status: "True", reason: "PreemptionByScheduler", message: "preempted" },
        ],
      },
      "evicted",
      /preempted/,
    ],
    [
      "that used too much memory",
      { phase: "Failed", ...container({ terminated: { exitCode: 137, reason: "OOMKilled" } }) },
      "container_oom",
      /memory/,
    ],
    [
      "whose worker failed",
      {
        phase: "Failed",
        ...container({ terminated: { exitCode: 2, reason: "Error", message: "Invalid configuration" } }),
      },
      "machine_ended",
      /exit code 2.*Invalid configuration/,
    ],
    [
      "that ended well without its run",
      { phase: "Succeeded", ...container({ terminated: { exitCode: 0 } }) },
      "machine_ended",
      /before it accepted its run/,
    ],
    ["that works", { phase: "Running", ...container({ running: {} }) }, undefined, /^/],
  ];
  test.each(FAULTS)("%s", async (_what, status, reason, pattern) => {
    const backend = await openBackend();
    await backend.start(anOrder(), STARTED_MS);
    cluster.setPod(NAME, status);
    const fault = await backend.faultOf(machineOf(anOrder()), false);
    expect([fault?.reason, pattern.test(fault?.message ?? "")]).toEqual([reason, true]);
  });

  test("that has succeeded is no failure once its run was accepted", async () => {
    const backend = await openBackend();
    await backend.start(anOrder(), STARTED_MS);
    cluster.setPod(NAME, { phase: "Succeeded", ...container({ terminated: { exitCode: 0 } }) });
    expect(await backend.faultOf(machineOf(anOrder()), true)).toBeUndefined();
  });

  test("whose Job was deleted is missing; one that was not observed yet is not", async () => {
    const backend = await openBackend();
    await backend.start(anOrder(), STARTED_MS);
    const job = cluster.jobs.get(NAME)!;
    cluster.jobs.delete(NAME);
    cluster.pods.clear();
    expect(await backend.faultOf(machineOf(anOrder()), false)).toBeUndefined(); // the list may be outdated
    cluster.jobs.set(NAME, job);
    expect(await backend.faultOf(machineOf(anOrder()), false)).toBeUndefined();
    cluster.jobs.delete(NAME);
    expect((await backend.faultOf(machineOf(anOrder()), false))?.reason).toBe("job_deleted");
  });

  test("whose Job exceeded its deadline reports so although it was deleted", async () => {
    const backend = await openBackend();
    await backend.start(anOrder(), STARTED_MS);
    cluster.pods.clear();
    cluster.jobs.get(NAME)!.status = { conditions: [{ type: "Failed", status: "True", reason: "DeadlineExceeded" }] };
    expect((await backend.faultOf(machineOf(anOrder()), true))?.reason).toBe("active_deadline");
  });

  test("of an unreachable cluster is not judged", async () => {
    const backend = await openBackend();
    await backend.start(anOrder(), STARTED_MS);
    cluster.failNext(/list pods/, 500);
    await expect(backend.faultOf(machineOf(anOrder()), false)).rejects.toMatchObject({ name: "Error" });
    cluster.failNext(/list pods/, 410);
    await expect(backend.faultOf(machineOf(anOrder()), false)).rejects.toMatchObject({ name: "Error" });
    expect(await backend.faultOf(machineOf(anOrder()), false)).toBeUndefined();
  });
});

describe("a restarted worker", () => {
  test("finds its own Jobs by their labels, page by page, without the ended ones and those of others", async () => {
    cluster.pageSize = 2;
    const backend = await openBackend();
    for (let n = 1; n <= 5; n++)
      await backend.start(anOrder({ executionId: BigInt(n), attempt: 1, offerToken: `mwo_${n}` }), STARTED_MS + n);
    await (await openBackend({}, { ...OWNER, workerId: "another" })).start(anOrder(), STARTED_MS);
    cluster.jobs.get(jobName({ executionId: 2n, attempt: 1 }, OWNER))!.status = {
      conditions: [{ type: "Complete", status: "True" }],
    };
    const found = await (await openBackend()).known();
    expect(
      found.map(({ executionId, attempt, startedMs }) => [Number(executionId), attempt, startedMs - STARTED_MS]),
    ).toEqual([
      [1, 1, 1],
      [3, 1, 3],
      [4, 1, 4],
      [5, 1, 5],
    ]);
    expect(found[0]?.runUid).toBe(anOrder().runUid);
  });

  test("is the same to the platform, and another one is not", async () => {
    const uidOf = async (workerId: string) => (await openBackend({}, { ...OWNER, workerId })).instanceUid();
    expect(await uidOf("a")).toBe(await uidOf("a"));
    expect(await uidOf("a")).not.toBe(await uidOf("b"));
  });
});

test("ending a machine deletes its Job with everything it owns, and a missing one is no error", async () => {
  const backend = await openBackend();
  await backend.start(anOrder(), STARTED_MS);
  await backend.end(machineOf(anOrder()), "cancelled");
  expect([cluster.jobs.size, cluster.pods.size, cluster.secrets.size]).toEqual([0, 0, 0]);
  expect(cluster.deletions).toMatchObject([{ propagationPolicy: "Background" }]);
  await backend.end(machineOf(anOrder()), "cancelled");
});

test("a watch that expires, or is rejected, is opened again", async () => {
  const backend = await openBackend();
  const over = new AbortController();
  let changes = 0;
  cluster.failNext(/watch pods/, 500);
  backend.watch?.(() => (changes += 1), over.signal);
  await eventually(() => cluster.watchCount === 1);
  cluster.expireWatches();
  await eventually(() => cluster.watchCount === 1);
  const before = changes;
  await backend.start(anOrder(), STARTED_MS);
  await eventually(() => changes > before);
  over.abort();
  await eventually(() => cluster.watchCount === 0);
  expect(cluster.asked.filter((what) => what === "watch pods").length).toBeGreaterThanOrEqual(3);
});

describe("with the dispatching worker", () => {
  let platform: FakePlatform;
  beforeEach(async () => {
    platform = await new FakePlatform().start();
  });
  afterEach(() => platform.stop());

  async function dispatching(env: Record<string, string> = {}) {
    const config = loadConfig({
      MILLWRIGHT_URL: platform.url,
      MILLWRIGHT_WORKER_KEY: WORKER_KEY,
      MILLWRIGHT_WORKER_ID: "cluster",
      MILLWRIGHT_BACKEND: "kubernetes",
      MILLWRIGHT_KUBERNETES_IMAGE: "worker:1",
      MILLWRIGHT_KUBERNETES_KUBECONFIG: join(dir, "kubeconfig"),
      ...env,
    });
    const backend = await openBackend(env, { url: config.url, workerId: config.workerId });
    return startDispatcher({ config, backend, clock: systemClock, timers: systemTimers, log });
  }
  const nameOf = (executionId: bigint) =>
    jobName({ executionId, attempt: 1 }, { url: platform.url, workerId: "cluster" });

  test("an offer becomes a Job, which is retained for its TTL after its end and deleted on cancel", async () => {
    const dispatcher = await dispatching();
    const [ended, cancelled] = [platform.offer(1n), platform.offer(2n)];
    await eventually(() => cluster.secrets.size === 2);
    expect(cluster.secrets.get(nameOf(1n))?.stringData).toEqual({ offer: ended.offerToken });
    for (const { offerToken } of [ended, cancelled]) platform.takeOffer(offerToken!, `pod of ${offerToken}`);
    ended.state = "ended";
    cancelled.state = "stopped";
    await eventually(() => platform.heartbeats.at(-1)?.watched.length === 1);
    cancelled.state = "ended";
    await eventually(() => !cluster.jobs.has(nameOf(2n)));
    expect(cluster.jobs.has(nameOf(1n))).toBe(true);
    await dispatcher.stopNow();
  });

  test("a failed pod is reported as soon as the cluster reports it, before and after its run was accepted", async () => {
    platform.timings = { ...platform.timings, heartbeatMs: 100 };
    const dispatcher = await dispatching();
    const [pulling, taken] = [platform.offer(1n), platform.offer(2n)];
    await eventually(() => cluster.secrets.size === 2);
    platform.takeOffer(taken.offerToken!, "pod");
    cluster.setPod(nameOf(1n), {
      phase: "Pending",
      containerStatuses: [{ image: "worker:1", state: { waiting: { reason: "ErrImagePull" } } }],
    });
    await eventually(() => platform.failedDispatches.some(({ executionId }) => executionId === 1n));
    const watchedTaken = () => platform.heartbeats.length;
    const heartbeats = watchedTaken();
    await eventually(() => watchedTaken() > heartbeats + 1); // the dispatcher knows that the second one was accepted
    cluster.setPod(nameOf(2n), { phase: "Failed", reason: "Evicted" });
    await eventually(() => platform.failedDispatches.length === 2);
    expect(platform.failedDispatches).toMatchObject([
      { executionId: 1n, reason: "image_pull", taken: false },
      { executionId: 2n, reason: "evicted", taken: true },
    ]);
    await eventually(() => cluster.jobs.size === 0);
    expect([pulling.state, taken.state]).toEqual(["lost", "lost"]);
    await dispatcher.stopNow();
  });

  test("a pod has everything that its worker needs: it accepts the run, executes it, and succeeds", async () => {
    const dispatcher = await dispatching({ MILLWRIGHT_SANDBOX: "none" });
    const attempt = platform.offer(1n, {
      provider: "scripted",
      modelId: "scripted",
      harness: "oz",
      executionSeq: 1,
      dockerImage: "node:24",
      inputs: [
        create(worker.InputMessageSchema, {
          uid: "0199c2f0-1111-7abc-8def-0123456789ab",
          kind: "prompt",
          mode: "normal",
          text: "```scripted\n- shell: echo from the pod\n```",
        }),
      ],
    });
    await eventually(() => cluster.secrets.size === 1);
    const [container] = cluster.pods.get(`${nameOf(1n)}-pod`)!.spec.containers;
    /** Maps the pod's volumes to directories of this machine. */
    const inPod = (path: string): string =>
      path.replace(/^\/(run\/millwright|work|tmp)/, (_whole, volume: string) => join(dir, volume.replace("/", "-")));
    for (const { mountPath } of container.volumeMounts) await mkdir(inPod(mountPath));
    await writeFile(inPod("/run/millwright/offer"), cluster.secrets.get(nameOf(1n))!.stringData!["offer"]!);
    const env = Object.fromEntries(
      container.env.map(({ name, value }: { name: string; value: string }) => [name, inPod(value)]),
    ) as Record<string, string>;
    const child = spawn(
      process.execPath,
      ["--conditions=@millwright/source", "--no-warnings", fileURLToPath(new URL("../src/main.ts", import.meta.url))],
      { stdio: "ignore", env: { ...env, PATH: process.env["PATH"] ?? "" } },
    );
    const [code] = (await once(child, "exit")) as [number | null];
    expect([code, attempt.completions.map(({ outcome }) => outcome)]).toEqual([0, ["DONE"]]);
    expect(attempt.events.find(({ kind }) => kind === "tool_end")?.payload).toMatchObject({
      output: { output: "from the pod\n" },
    });
    await eventually(() => platform.heartbeats.at(-1)?.watched.length === 0);
    expect([platform.failedDispatches, cluster.deletions]).toEqual([[], []]);
    await dispatcher.stopNow();
  });

  test("a slow watch costs only a heartbeat, and leftovers of lost attempts are deleted after a restart", async () => {
    cluster.isWatchAlive = false;
    const first = await dispatching();
    const attempt = platform.offer(1n);
    await eventually(() => cluster.secrets.size === 1);
    await first.stopNow();
    attempt.state = "lost"; // while no worker was running
    const second = await dispatching();
    await eventually(() => cluster.jobs.size === 0);
    platform.offer(2n);
    await eventually(() => cluster.secrets.size === 1);
    cluster.setPod(nameOf(2n), { phase: "Failed", reason: "Evicted" });
    await eventually(() => platform.failedDispatches.length === 1);
    expect(platform.failedDispatches).toMatchObject([{ executionId: 2n, reason: "evicted" }]);
    await second.stopNow();
  });
});

test("deploy/kubernetes/worker.yaml permits the worker's requests to the cluster, and nothing else", async () => {
  const backend = await openBackend();
  cluster.failNext(/create jobs/, 500, { when: "after" });
  const over = new AbortController();
  backend.watch?.(() => {}, over.signal);
  await backend.start(anOrder(), STARTED_MS);
  await backend.known();
  await backend.faultOf(machineOf(anOrder()), false);
  await backend.end(machineOf(anOrder()), "lost");
  await eventually(() => cluster.asked.includes("watch pods"));
  over.abort();
  const allowed: string[] = deployedOfKind("Role").rules.flatMap(({ resources, verbs }: Record<string, string[]>) =>
    resources!.flatMap((resource) => verbs!.map((verb) => `${verb} ${resource}`)),
  );
  expect([...new Set(cluster.asked)].toSorted()).toEqual(allowed.toSorted());
  expect([deployedOfKind("ClusterRole"), deployedOfKind("ClusterRoleBinding")]).toEqual([undefined, undefined]);
});
