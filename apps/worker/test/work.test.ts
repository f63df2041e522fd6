import { afterEach, describe, expect, test } from "@jest/globals";
import { Code } from "@connectrpc/connect";
import { eventually } from "@millwright/testing";
import { LeaseLost } from "../src/context/execution-errors.ts";
import { refusal } from "./fake-platform.ts";
import { drivenExecution, fakeSandbox, testWorker, type TestWorker, type TestWorkerSettings } from "./test-worker.ts";

let running: TestWorker[] = [];
afterEach(async () => {
  await Promise.all(running.map((worker) => worker.close()));
  running = [];
});
async function start(settings: TestWorkerSettings): Promise<TestWorker> {
  const worker = await testWorker(settings);
  running.push(worker);
  return worker;
}

describe("an offer", () => {
  test("is accepted, run, reported event by event, and completed with its last event", async () => {
    const { platform } = await start({
      runExecution: async (ctx) => {
        ctx.phase("RUNNING");
        ctx.emit("message", { text: `hello from ${ctx.publicUrl}` });
        await ctx.flushed();
        ctx.emit("turn_end", { outcome: "done" });
        return { outcome: "DONE", message: "finished" };
      },
    });
    const attempt = platform.offer(7n);
    await eventually(() => attempt.completions.length === 1);
    expect(attempt.events).toEqual([
      { clientSeq: 1n, kind: "message", payload: { text: "hello from https://public.example" } },
      { clientSeq: 2n, kind: "turn_end", payload: { outcome: "done" } },
    ]);
    expect(attempt.completions[0]).toMatchObject({ outcome: "DONE", lastClientSeq: 2n, message: "finished" });
    expect(platform.registrations).toMatchObject([{ slots: 4, sandbox: "bwrap", backend: "direct" }]);
  });

  test("that no longer exists when accepted runs nothing", async () => {
    const driven = drivenExecution();
    const { platform } = await start({ runExecution: driven.runExecution });
    platform.onCall = (method) => {
      if (method === "accept") platform.attempts.get("1-1")!.state = "lost";
    };
    platform.offer(1n);
    await eventually(() => platform.calls.includes("accept"));
    platform.offer(2n);
    await eventually(() => driven.contexts.length === 1);
    expect(driven.contexts[0]?.assignment.executionId).toBe(2n);
  });

  test("whose acceptance took effect without a response is executed once", async () => {
    const driven = drivenExecution();
    const { platform } = await start({ runExecution: driven.runExecution });
    platform.failNext("accept", "after");
    platform.offer(1n);
    await eventually(() => driven.contexts.length === 1);
    driven.ends[0]?.({ outcome: "DONE" });
    await eventually(() => platform.attempts.get("1-1")?.completions.length === 1);
    expect(driven.contexts).toHaveLength(1);
  });

  test("is requested only while slots are free, and a slot is free only when its sandbox is gone", async () => {
    const sandbox = fakeSandbox({ diesOn: "never" });
    const { platform } = await start({
      env: { MILLWRIGHT_WORKER_SLOTS: "1" },
      runExecution: (ctx) => {
        if (ctx.assignment.executionId === 1n) ctx.ownSandbox(sandbox.handle);
        return Promise.resolve({ outcome: "DONE" });
      },
    });
    const first = platform.offer(1n);
    await eventually(() => sandbox.orders.includes("kill"));
    const second = platform.offer(2n);
    const leaseCalls = platform.leaseRequests.length;
    await eventually(() => platform.heartbeats.filter(({ freeSlots }) => freeSlots === 0).length >= 2);
    expect(platform.leaseRequests).toHaveLength(leaseCalls);
    expect([first.completions.length, second.state]).toEqual([0, "offered"]);
    sandbox.vanish();
    await eventually(() => second.completions.length === 1);
    expect(first.completions).toHaveLength(1);
  });
});

test("what an execution ends with is masked like its events", async () => {
  const secret = "one-4711\n-----line two of a key-----";
  const { platform } = await start({
    runExecution: () =>
      Promise.resolve({
        outcome: "FAILED",
        message: `It is ${secret}.`,
        error: {
          code: "environment_setup_failed",
          message: "two\0: -----line two of a key-----",
          retryable: false,
          reason: "r",
        },
      }),
  });
  const attempt = platform.offer(1n, { secrets: { KEY: secret } });
  await eventually(() => attempt.completions.length === 1);
  expect(attempt.completions[0]).toMatchObject({ message: "It is ***.", error: { message: "two\uFFFD: ***" } });
});

describe("a lost response", () => {
  test.each(["before", "after"] as const)(
    "of AppendEvents (lost %s it took effect) is recovered without duplicates",
    async (when) => {
      const { platform } = await start({
        runExecution: async (ctx) => {
          for (let i = 0; i < 5; i++) ctx.emit("message", { i });
          await ctx.flushed();
          ctx.emit("message", { i: 5 });
          return { outcome: "DONE" };
        },
      });
      platform.failNext("appendEvents", when);
      platform.failNext("appendEvents", when);
      const attempt = platform.offer(1n);
      await eventually(() => attempt.completions.length === 1);
      expect(attempt.events.map(({ payload }) => payload["i"])).toEqual([0, 1, 2, 3, 4, 5]);
    },
  );

  test.each(["before", "after"] as const)("of Complete (lost %s it took effect) is recovered", async (when) => {
    const { platform } = await start({
      runExecution: () => Promise.resolve({ outcome: "BLOCKED", message: "Which name?" }),
    });
    platform.failNext("complete", when);
    const attempt = platform.offer(1n);
    await eventually(() => platform.calls.filter((call) => call === "complete").length === 2);
    await eventually(() => attempt.completions.length > 0);
    expect(attempt.completions[0]).toMatchObject({ outcome: "BLOCKED", message: "Which name?" });
  });

  test("while the platform is down delays, and loses nothing", async () => {
    const driven = drivenExecution();
    const { platform } = await start({ runExecution: driven.runExecution });
    const attempt = platform.offer(1n);
    await eventually(() => driven.contexts.length === 1);
    platform.setDown(true);
    for (let i = 0; i < 450; i++) driven.contexts[0]?.emit("message", { i });
    driven.ends[0]?.({ outcome: "DONE" });
    platform.setDown(false);
    await eventually(() => attempt.completions.length === 1);
    expect(attempt.events.map(({ payload }) => payload["i"])).toEqual(Array.from({ length: 450 }, (_, i) => i));
  });
});

test("an attempt whose acknowledged events the platform has lost does not continue", async () => {
  const driven = drivenExecution();
  const { platform } = await start({ runExecution: driven.runExecution });
  const attempt = platform.offer(1n);
  await eventually(() => driven.contexts.length === 1);
  const ctx = driven.contexts[0];
  ctx?.emit("message", { i: 0 });
  await ctx?.flushed();
  attempt.events.pop();
  ctx?.emit("message", { i: 1 });
  await expect(ctx?.flushed()).rejects.toMatchObject({ reason: "append_without_progress" });
  await eventually(() => driven.contexts[0]?.signal.aborted);
});

test("events that the platform rejects permanently end the execution with that reason", async () => {
  const driven = drivenExecution();
  const { platform } = await start({ runExecution: driven.runExecution });
  const attempt = platform.offer(1n);
  await eventually(() => driven.contexts.length === 1);
  platform.failNext("appendEvents", "before", refusal("too_large", "events_quota", Code.ResourceExhausted));
  driven.contexts[0]?.emit("message", { text: "one too many" });
  await eventually(() => attempt.completions.length === 1);
  expect(attempt.completions[0]).toMatchObject({
    outcome: "ERROR",
    lastClientSeq: 0n,
    error: { reason: "events_quota" },
  });
});

test("secrets and run tokens, renewed ones too, appear in no event", async () => {
  const driven = drivenExecution();
  const { platform } = await start({ runExecution: driven.runExecution });
  platform.runToken = "mwr_token-2";
  const attempt = platform.offer(1n, { secrets: { A: "hunter2", B: "hunter2-longer", SHORT: "abc" } });
  await eventually(() => attempt.heartbeats.length > 1);
  driven.contexts[0]?.emit("tool_end", {
    output: ["x hunter2-longer y hunter2", { "mwr_token-2": "mwr_token-1 abc" }],
  });
  await driven.contexts[0]?.flushed();
  expect(attempt.events[0]?.payload).toEqual({ output: ["x *** y ***", { "***": "*** abc" }] });
});

describe("losing the lease", () => {
  test.each([
    ["by heartbeat", (worker: TestWorker) => void (worker.platform.attempts.get("1-1")!.state = "lost")],
    [
      "by an append's answer",
      (worker: TestWorker) => {
        worker.platform.failNext("appendEvents", "before", refusal("conflict", "lease_lost", Code.FailedPrecondition));
      },
    ],
  ])("on %s it aborts and kills at once, and reports nothing more", async (_, lose) => {
    const sandbox = fakeSandbox();
    const driven = drivenExecution();
    const worker = await start({ runExecution: driven.runExecution });
    const attempt = worker.platform.offer(1n);
    await eventually(() => driven.contexts.length === 1);
    const ctx = driven.contexts[0]!;
    ctx.ownSandbox(sandbox.handle);
    lose(worker);
    ctx.emit("message", { text: "last" });
    await eventually(() => ctx.signal.aborted);
    expect(ctx.signal.reason).toBeInstanceOf(LeaseLost);
    expect(sandbox.orders).toEqual(["kill"]);
    await expect(ctx.flushed()).rejects.toBeInstanceOf(LeaseLost);
    expect(() => ctx.gate.assertOpen()).toThrow(LeaseLost);
    await eventually(() => worker.platform.heartbeats.at(-1)?.leases.length === 0);
    expect(attempt.completions).toEqual([]);
  });
});

describe("an invalid session", () => {
  test("is replaced by registering again as the same process, and the work continues", async () => {
    const driven = drivenExecution();
    const { platform } = await start({ runExecution: driven.runExecution });
    const attempt = platform.offer(1n);
    await eventually(() => driven.contexts.length === 1);
    platform.invalidateSession();
    driven.contexts[0]?.emit("message", {});
    driven.ends[0]?.({ outcome: "DONE" });
    await eventually(() => attempt.completions.length === 1);
    expect(new Set(platform.registrations.map(({ instanceUid }) => instanceUid)).size).toBe(1);
    expect(platform.registrations).toHaveLength(2);
    const next = platform.offer(2n);
    await eventually(() => next.state === "accepted");
  });

  test("a key that the platform rejects ends the worker", async () => {
    const { worker, platform } = await start({
      runExecution: drivenExecution().runExecution,
      env: { MILLWRIGHT_WORKER_KEY: "mww_other" },
    });
    expect(await worker.ended).toMatchObject({ refusal: { reason: "key_invalid" } });
    expect(platform.calls.filter((call) => call === "register")).toHaveLength(1);
  });
});
