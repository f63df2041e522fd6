import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Metrics } from "@millwright/telemetry";
import { runMetrics, type RunMetrics } from "../src/run-metrics.ts";
import { acceptExecution, startExecution } from "./support/fake-worker.ts";
import { aCaller, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

const metrics = new Metrics();
let platform: TestPlatform;
let counts: RunMetrics;
beforeAll(async () => {
  platform = await testPlatform({ countModelCalls: (calls) => counts.modelCalls(calls) });
  counts = runMetrics(metrics, platform.database, platform.timings);
});
afterAll(async () => {
  counts.stop();
  await platform.close();
});

/** Returns the values of a metric, by its labels as exported. */
async function valuesOf(name: string): Promise<Record<string, number>> {
  const lines = (await metrics.text()).split("\n").filter((line) => line.startsWith(`${name}{`));
  return Object.fromEntries(
    lines.map((line) => [/\{(.*)\}/.exec(line)![1]!.replaceAll('"', ""), Number(line.split(" ").at(-1))]),
  );
}

test("queue metrics report what runs wait for, what workers execute and what has ended", async () => {
  const caller = aCaller();
  const worker = await platform.worker({ teamUid: teamOf(caller), slots: 2 });
  await platform.run(aCaller()); // a run of a team without a worker
  const [first] = [await platform.run(caller), await platform.run(caller), await platform.run(caller)];
  expect(await valuesOf("millwright_runs")).toEqual({ "state=QUEUED": 4 });
  expect(await valuesOf("millwright_queue_depth")).toMatchObject({ "reason=no_workers": 1, "reason=none": 3 });

  const execution = await startExecution(platform, worker);
  const failing = await acceptExecution(platform, worker);
  expect(await valuesOf("millwright_queue_depth")).toMatchObject({
    "reason=no_workers": 1,
    "reason=workers_busy": 1,
    "reason=waiting_for_children": 0,
  });
  expect(await valuesOf("millwright_queue_oldest_seconds")).toEqual({
    "reason=no_workers": expect.any(Number),
    "reason=workers_busy": expect.any(Number),
  });
  expect(await valuesOf("millwright_runs")).toEqual({ "state=QUEUED": 2, "state=CLAIMED": 1, "state=INPROGRESS": 1 });
  expect(await valuesOf("millwright_leases")).toEqual({ "phase=SETUP": 2 });
  expect(await valuesOf("millwright_worker_slots")).toEqual({ "state=used": 2, "state=free": 0 });
  expect(await valuesOf("millwright_workers")).toEqual({ "state=READY": 1 });

  const child = await platform.run(caller, { parentRunUid: execution.assignment.job.run.runUid });
  await execution.complete("WAITING", { waitFor: { policy: "all", runUids: [child.uid] } });
  await failing.complete("FAILED", {
    error: { code: "invalid_request", message: "No.", retryable: false, reason: "" },
  });
  await platform.life.cancelRun(caller, { runUid: child.uid, tree: false });
  expect(await valuesOf("millwright_runs_finished_total")).toEqual({ "state=FAILED": 1, "state=CANCELLED": 1 });
  expect([first.state, (await valuesOf("millwright_leases"))["phase=SETUP"]]).toEqual(["QUEUED", undefined]);
});

test("values that workers and definitions choose do not become labels", async () => {
  const caller = aCaller();
  await platform.run(caller);
  const worker = await platform.worker({ teamUid: teamOf(caller), host: randomUUID() });
  const { assignment } = await acceptExecution(platform, worker);
  const strange = () => ({
    executionId: assignment.executionId,
    attempt: assignment.attempt,
    phase: randomUUID(),
    ackedDirectiveSeq: 0,
  });
  for (let n = 0; n < 3; n += 1) {
    const modelCalls = [
      { provider: "anthropic", outcome: "ok", count: 2 },
      { provider: randomUUID(), outcome: randomUUID(), count: 1 },
      { provider: "openai", outcome: "ok", count: -5 },
    ];
    await platform.life.worker.heartbeat(worker.session, {
      state: "READY",
      freeSlots: 1,
      leases: [strange()],
      modelCalls,
    });
  }
  counts.usage(randomUUID(), { input: 5, output: 1 }, undefined);
  counts.usage("anthropic", { input: 7, cacheRead: 2 }, 1_500_000n);
  expect(await valuesOf("millwright_model_calls_total")).toEqual({
    "provider=anthropic,outcome=ok": 6,
    "provider=other,outcome=other": 3,
  });
  expect(await valuesOf("millwright_model_tokens_total")).toEqual({
    "provider=other,kind=input": 5,
    "provider=other,kind=output": 1,
    "provider=anthropic,kind=input": 7,
    "provider=anthropic,kind=cacheRead": 2,
  });
  expect(await valuesOf("millwright_model_cost_dollars_total")).toEqual({ "provider=anthropic": 1.5 });
  expect((await valuesOf("millwright_leases"))["phase=other"]).toBe(1);
});
