import { afterEach, describe, expect, test } from "@jest/globals";
import { manualClock } from "@millwright/clock";
import { eventually } from "@millwright/testing";
import { OutboundGateClosed } from "../src/egress/outbound-gate.ts";
import { LeaseLost } from "../src/context/execution-errors.ts";
import { drivenExecution, fakeSandbox, testWorker, type TestWorker } from "./test-worker.ts";

const DOORS_CLOSE_MS = 60_000; // as the fake platform announces
const CLOSED_KILL_MS = 6_000; // 60 of its heartbeats

let running: TestWorker[] = [];
afterEach(async () => {
  await Promise.all(running.map((worker) => worker.close()));
  running = [];
});

/** Starts an execution with a manual clock, whose platform is then unreachable. */
async function cutOff(kind: "bwrap" | "none") {
  const clock = manualClock();
  const driven = drivenExecution();
  const started = await testWorker({ runExecution: driven.runExecution, clock, sandbox: { kind, features: [] } });
  running.push(started);
  const attempt = started.platform.offer(1n);
  await eventually(() => driven.contexts.length === 1);
  const ctx = driven.contexts[0]!;
  const sandbox = fakeSandbox();
  ctx.ownSandbox(sandbox.handle);
  expect(ctx.sandbox.kind).toBe(kind);
  started.platform.setDown(true);
  return { ...started, clock, ctx, sandbox, attempt };
}

describe("without renewal", () => {
  test("effects wait while the outbound gate is closed, and happen once the platform is back", async () => {
    const { platform, clock, ctx, sandbox } = await cutOff("bwrap");
    clock.advance(DOORS_CLOSE_MS);
    expect(() => ctx.gate.assertOpen()).toThrow(OutboundGateClosed);
    const artifact = ctx.platform.createArtifact({
      clientArtifactId: "c1-1",
      artifactType: "PLAN",
      data: { title: "Plan" },
    });
    platform.setDown(false);
    expect(await artifact).toEqual({ artifactUid: "uid-of-c1-1" });
    expect(platform.calls.indexOf("createArtifact")).toBeGreaterThan(
      platform.calls.lastIndexOf("heartbeat", platform.calls.indexOf("createArtifact") - 1),
    );
    expect(() => ctx.gate.assertOpen()).not.toThrow();
    expect(sandbox.orders).toEqual([]);
  });

  test("a short outage kills nothing, a long one ends the attempt", async () => {
    const { clock, ctx, sandbox, attempt } = await cutOff("bwrap");
    clock.advance(DOORS_CLOSE_MS + CLOSED_KILL_MS);
    expect(ctx.signal.aborted).toBe(false);
    clock.advance(1);
    await eventually(() => ctx.signal.aborted);
    expect(ctx.signal.reason).toBeInstanceOf(LeaseLost);
    expect(sandbox.orders).toEqual(["kill"]);
    expect(attempt.completions).toEqual([]);
  });

  test("an agent without a sandbox is killed as soon as the outbound gate closes", async () => {
    const { clock, ctx, sandbox } = await cutOff("none");
    clock.advance(DOORS_CLOSE_MS);
    await eventually(() => ctx.signal.aborted);
    expect(sandbox.orders).toEqual(["kill"]);
  });
});
