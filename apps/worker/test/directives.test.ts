import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "@jest/globals";
import { manualClock, type Clock } from "@millwright/clock";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { worker } from "@millwright/contracts";
import { eventually } from "@millwright/testing";
import type { ExecutionContext } from "../src/context/execution-context.ts";
import { ExecutionCancelled, LeaseLost } from "../src/context/execution-errors.ts";
import { SandboxStartFailed } from "../src/sandbox/sandbox-errors.ts";
import type { FakePlatform } from "./fake-platform.ts";
import { drivenExecution, fakeSandbox, testWorker, type TestWorker, type TestWorkerSettings } from "./test-worker.ts";

let running: TestWorker[] = [];
afterEach(async () => {
  await Promise.all(running.map((started) => started.close()));
  running = [];
});

/** Starts a worker with one running execution. */
async function startOne(settings: Partial<TestWorkerSettings> = {}) {
  const driven = drivenExecution();
  const started = await testWorker({ runExecution: driven.runExecution, ...settings });
  running.push(started);
  const attempt = started.platform.offer(1n);
  await eventually(() => driven.contexts.length === 1);
  return { ...started, attempt, ctx: driven.contexts[0]!, end: driven.ends[0]! };
}
const followup = (uid: string) => ({
  case: "followup" as const,
  value: create(worker.FollowupSchema, { message: { uid, text: `text of ${uid}` } }),
});
const cancel = { case: "cancel" as const, value: create(worker.CancelSchema, { reason: "Not needed any more." }) };

describe("a directive", () => {
  test.each([
    ["the stream", true],
    ["heartbeats, while the stream is dead,", false],
  ])("arrives by %s", async (_, isStreamAlive) => {
    const { platform, ctx } = await startOne({ platform: (fake) => (fake.isStreamAlive = isStreamAlive) });
    const turns: string[] = [];
    ctx.directives.onInterrupt((turnId) => void turns.push(turnId));
    platform.direct(1n, 1n, { case: "interrupt", value: create(worker.InterruptSchema, { turnId: "turn-1" }) });
    await eventually(() => turns.length > 0);
    expect(turns).toEqual(["turn-1"]);
  });

  test("that arrives again, on either path, is dropped; its acknowledgement is sent with the heartbeats", async () => {
    const { platform, ctx, attempt } = await startOne();
    const received: string[] = [];
    ctx.directives.onFollowup((message, seq) => {
      received.push(message.uid);
      if (seq === 2n) ctx.directives.ack(1n);
    });
    platform.direct(1n, 1n, followup("a"));
    await eventually(() => received.length === 1);
    const { length } = platform.heartbeats;
    await eventually(() => platform.heartbeats.length > length + 2); // each heartbeat repeats the directive
    platform.direct(1n, 2n, followup("b"));
    await eventually(() => attempt.heartbeats.at(-1)?.ackedDirectiveSeq === 1n);
    expect(received).toEqual(["a", "b"]);
  });

  test("handled just before the end is acknowledged before the execution completes", async () => {
    const { platform, ctx, attempt, end } = await startOne();
    let heartbeatsAtEnd = -1;
    platform.onCall = (method) => {
      if (method === "complete") heartbeatsAtEnd = attempt.heartbeats.length;
    };
    ctx.directives.onFollowup((_, seq) => {
      ctx.directives.ack(seq);
      end({ outcome: "DONE" });
    });
    platform.direct(1n, 1n, followup("a"));
    await eventually(() => attempt.completions.length === 1);
    expect(attempt.heartbeats[heartbeatsAtEnd - 1]?.ackedDirectiveSeq).toBe(1n);
  });

  test("for an attempt of another worker is ignored", async () => {
    const { platform, ctx } = await startOne();
    platform.offer(9n, {}, 1).state = "lost";
    platform.direct(9n, 1n, cancel);
    const { length } = platform.heartbeats;
    await eventually(() => platform.heartbeats.length > length);
    expect(ctx.signal.aborted).toBe(false);
  });
});

describe("a cancel", () => {
  test.each(["terminate", "kill"] as const)(
    "escalates from the protocol over SIGTERM to SIGKILL until the sandbox is gone (ends on %s)",
    async (diesOn) => {
      const sandbox = fakeSandbox({ diesOn });
      const stubborn = await testWorker({
        runExecution: async (ctx) => {
          ctx.ownSandbox(sandbox.handle);
          await sandbox.handle.gone;
          ctx.emit("sandbox_stopped", { reason: "cancelled" });
          return { outcome: "DONE" };
        },
      });
      running.push(stubborn);
      const attempt = stubborn.platform.offer(1n);
      await eventually(() => attempt.state === "accepted");
      stubborn.platform.direct(1n, 1n, cancel);
      await eventually(() => attempt.completions.length === 1);
      expect(sandbox.orders.slice(0, 2)).toEqual(diesOn === "terminate" ? ["terminate"] : ["terminate", "kill"]);
      expect(attempt.completions[0]).toMatchObject({ outcome: "CANCELLED", lastClientSeq: 1n });
    },
  );

  test("gives the harness its reason, and its last events still arrive", async () => {
    const { platform, ctx, attempt } = await startOne();
    ctx.signal.addEventListener("abort", () => ctx.emit("turn_end", { outcome: "interrupted" }));
    platform.direct(1n, 1n, cancel);
    await eventually(() => attempt.completions.length === 1);
    expect(ctx.signal.reason).toBeInstanceOf(ExecutionCancelled);
    expect(ctx.signal.reason).toMatchObject({ message: "Not needed any more." });
    expect(attempt.events.map(({ kind }) => kind)).toEqual(["turn_end"]);
    expect(attempt.completions[0]?.outcome).toBe("CANCELLED");
  });

  test("requested by a heartbeat's STOP does the same", async () => {
    const { ctx, attempt } = await startOne();
    attempt.state = "stopped";
    ctx.signal.addEventListener("abort", () => ctx.emit("turn_end", { outcome: "interrupted" }));
    await eventually(() => attempt.completions.length === 1);
    expect([attempt.events.length, attempt.completions[0]?.outcome]).toEqual([1, "CANCELLED"]);
  });

  test("is not hindered by a harness that never ends", async () => {
    const sandbox = fakeSandbox();
    const started = await testWorker({
      runExecution: (ctx) => {
        ctx.ownSandbox(sandbox.handle);
        return new Promise(() => {});
      },
    });
    running.push(started);
    const attempt = started.platform.offer(1n);
    await eventually(() => attempt.state === "accepted");
    started.platform.direct(1n, 1n, cancel);
    await eventually(() => attempt.completions.length === 1);
    expect(attempt.completions[0]?.outcome).toBe("CANCELLED");
  });
});

describe("the workspace of a cancelled execution", () => {
  const aborted = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve) =>
      signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve(), { once: true }),
    );
  /**
   * Starts an execution, cancels it and calls `save` when it is stopped. `heartbeatMs`: by default, the times of the
   * termination are too long for a test to reach.
   */
  async function cancelling(
    save: (ctx: ExecutionContext, platform: FakePlatform) => ReturnType<TestWorkerSettings["runExecution"]>,
    { heartbeatMs = 600_000, clock }: { heartbeatMs?: number; clock?: Clock } = {},
  ) {
    let platform: FakePlatform | undefined;
    const started = await testWorker({
      clock,
      platform: (fake) => ((platform = fake).timings.heartbeatMs = heartbeatMs),
      runExecution: async (ctx) => {
        expect(ctx.lastSave()).toBeUndefined();
        await aborted(ctx.signal);
        return save(ctx, platform!);
      },
    });
    running.push(started);
    const attempt = started.platform.offer(1n);
    await eventually(() => attempt.state === "accepted");
    started.platform.direct(1n, 1n, cancel);
    return { ...started, attempt };
  }
  const aSnapshot = async ({ dir }: ExecutionContext): Promise<string> => {
    await writeFile(join(dir, "snapshot"), "work");
    return join(dir, "snapshot");
  };
  const uploadsTo = (platform: FakePlatform) => platform.requests.filter(({ url }) => url === "/blobs/snapshot");
  /** Makes the platform declare the attempt lost when the worker sends its next event. */
  const lose = (ctx: ExecutionContext, platform: FakePlatform): void => {
    platform.attempts.get("1-1")!.state = "lost";
    ctx.emit("message", {});
  };

  test("is uploaded before the execution completes", async () => {
    const { platform, attempt } = await cancelling(async (ctx) => {
      const { snapshotKey } = await ctx.lastSave()!.platform.putSnapshot(await aSnapshot(ctx));
      return { outcome: "CANCELLED", snapshotKey };
    });
    await eventually(() => attempt.completions.length === 1);
    expect(attempt.completions[0]).toMatchObject({ outcome: "CANCELLED", snapshotKey: "snap-1" });
    expect(uploadsTo(platform)).toMatchObject([{ method: "PUT", body: "work" }]);
  });

  test("is saved in sandboxes of its own, until half a step after the agent was killed", async () => {
    const [agent, saving] = [fakeSandbox(), fakeSandbox()];
    let orders: unknown;
    const { attempt } = await cancelling(
      async (ctx) => {
        const means = ctx.lastSave()!;
        ctx.ownSandbox(agent.handle);
        means.ownSandbox(saving.handle);
        await aborted(means.signal);
        orders = [[...agent.orders], [...saving.orders]];
        ctx.emit("warning", {});
        return { outcome: "CANCELLED" };
      },
      { heartbeatMs: 100 },
    );
    await eventually(() => attempt.completions.length === 1);
    expect(orders).toEqual([["terminate", "kill"], []]);
    expect(attempt.completions[0]).toMatchObject({ outcome: "CANCELLED", lastClientSeq: 1n });
  });

  test("does not delay the completion if saving it does not end", async () => {
    const saving = fakeSandbox();
    const { attempt } = await cancelling(
      (ctx) => {
        ctx.lastSave()!.ownSandbox(saving.handle);
        return new Promise(() => {});
      },
      { heartbeatMs: 100 },
    );
    await eventually(() => attempt.completions.length === 1);
    expect([attempt.completions[0]?.outcome, saving.orders]).toEqual(["CANCELLED", ["kill"]]);
  });

  test("is not uploaded after the lease was lost", async () => {
    let saved: unknown;
    const { platform, attempt } = await cancelling(async (ctx, fake) => {
      const [means, file] = [ctx.lastSave()!, await aSnapshot(ctx)];
      lose(ctx, fake);
      await aborted(means.signal);
      saved = [ctx.lastSave(), await means.platform.putSnapshot(file).catch((error: unknown) => error)];
      return { outcome: "CANCELLED" };
    });
    await eventually(() => saved !== undefined);
    expect(saved).toEqual([undefined, expect.any(LeaseLost)]);
    expect([uploadsTo(platform), attempt.completions]).toEqual([[], []]);
  });

  test("is not uploaded while the outbound gate is closed", async () => {
    const clock = manualClock();
    let saved: unknown;
    const { platform } = await cancelling(
      async (ctx, fake) => {
        const [means, file] = [ctx.lastSave()!, await aSnapshot(ctx)];
        clock.advance(60_000);
        const saving = means.platform.putSnapshot(file).catch((error: unknown) => error);
        for (let responses = 0; responses < 5; responses += 1) {
          ctx.emit("message", {});
          await ctx.flushed();
        }
        lose(ctx, fake);
        saved = await saving;
        return { outcome: "CANCELLED" };
      },
      { clock },
    );
    await eventually(() => saved !== undefined);
    expect(saved).toBeInstanceOf(LeaseLost);
    expect(platform.calls).not.toContain("putSnapshot");
  });
});

test("an execution over its time limit ends as a timeout", async () => {
  const driven = drivenExecution();
  const started = await testWorker({ runExecution: driven.runExecution });
  running.push(started);
  const attempt = started.platform.offer(1n, { maxExecutionSeconds: 1 });
  await eventually(() => attempt.completions.length === 1);
  expect(attempt.completions[0]).toMatchObject({ outcome: "ERROR", error: { code: "infrastructure_timeout" } });
});

describe("draining", () => {
  test("finishes active runs, still sends heartbeats, claims nothing more, and exits", async () => {
    const { platform, worker: draining, attempt, end } = await startOne({ env: { MILLWRIGHT_WORKER_DRAIN: "1h" } });
    const drained = draining.drain();
    await eventually(() => platform.heartbeats.at(-1)?.state === "DRAINING");
    const refused = platform.offer(2n);
    const { length } = platform.heartbeats;
    await eventually(() => platform.heartbeats.length > length + 1);
    expect([refused.state, attempt.heartbeats.at(-1)?.phase]).toEqual(["offered", "SETUP"]);
    end({ outcome: "DONE" });
    await drained;
    expect(attempt.completions).toMatchObject([{ outcome: "DONE" }]);
    expect(await draining.ended).toEqual({});
  });

  test("over its time stops what runs, reports its last events and returns the lease", async () => {
    const { platform, ctx, attempt, worker: draining } = await startOne({ env: { MILLWRIGHT_WORKER_DRAIN: "1ms" } });
    ctx.directives.onInterrupt(() => {});
    ctx.signal.addEventListener("abort", () => ctx.emit("tool_end", { state: "interrupted" }));
    platform.direct(1n, 1n, { case: "interrupt", value: create(worker.InterruptSchema, { turnId: "turn-1" }) });
    let atReturn: unknown;
    platform.onCall = (method) => {
      if (method === "returnLeases") atReturn = attempt.events.map(({ kind }) => kind);
    };
    await draining.drain();
    expect(ctx.signal.reason).toMatchObject({ stopCause: "worker_stopping" });
    expect(attempt.completions).toEqual([]);
    expect(platform.returned).toMatchObject([
      { executionId: 1n, attempt: 1, reason: "worker_stopping", failure: false },
    ]);
    expect(atReturn).toEqual(["tool_end"]);
  });

  test("also ends if the platform does not support returning leases", async () => {
    const { platform, worker: draining } = await startOne({ env: { MILLWRIGHT_WORKER_DRAIN: "1ms" } });
    platform.failNext("returnLeases", "before", new ConnectError("unknown method", Code.Unimplemented));
    await draining.drain();
    expect([await draining.ended, platform.returned]).toEqual([{}, []]);
  });

  test("also starts when the platform requests it", async () => {
    const { platform, end, worker: draining } = await startOne({ env: { MILLWRIGHT_WORKER_DRAIN: "1h" } });
    platform.direct(1n, 1n, { case: "drain", value: create(worker.DrainSchema) });
    await eventually(() => platform.heartbeats.at(-1)?.state === "DRAINING");
    end({ outcome: "DONE" });
    expect(await draining.ended).toEqual({});
  });
});

test("stopping at once kills active runs, returns their leases and claims no other", async () => {
  const sandbox = fakeSandbox();
  const { platform, worker: leaving, ctx } = await startOne();
  ctx.ownSandbox(sandbox.handle);
  await leaving.stopNow();
  expect(sandbox.orders).toContain("kill");
  expect(platform.returned).toMatchObject([{ executionId: 1n, reason: "worker_stopping", failure: false }]);
  expect(platform.offer(2n).state).toBe("offered");
});

test("an execution whose sandbox did not start is returned with the cause, which counts as a lost worker", async () => {
  const started = await testWorker({
    runExecution: () => Promise.reject(new SandboxStartFailed("It did not respond within 15 s.", undefined)),
  });
  running.push(started);
  const attempt = started.platform.offer(1n);
  await eventually(() => started.platform.returned.length === 1);
  expect(started.platform.returned).toMatchObject([
    {
      executionId: 1n,
      attempt: 1,
      reason: "sandbox_start_failed",
      message: "It did not respond within 15 s.",
      failure: true,
    },
  ]);
  expect(attempt.completions).toEqual([]);
});
