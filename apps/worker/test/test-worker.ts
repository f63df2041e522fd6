import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, type Clock } from "@millwright/clock";
import { createLogger } from "@millwright/telemetry";
import { startWorker } from "../src/compose.ts";
import type { WorkerOptions, RunningWorker } from "../src/running-worker.ts";
import { loadConfig } from "../src/config.ts";
import type { ExecutionContext, ExecutionResult, RunExecution } from "../src/context/execution-context.ts";
import type { SandboxHandle } from "../src/sandbox/sandbox-handle.ts";
import { systemTimers } from "../src/time/timers.ts";
import { FakePlatform, WORKER_KEY } from "./fake-platform.ts";

export type TestWorker = { platform: FakePlatform; worker: RunningWorker; dir: string; close(): Promise<void> };

export type TestWorkerSettings = {
  runExecution: RunExecution;
  clock?: Clock;
  sandbox?: WorkerOptions["sandbox"];
  env?: Record<string, string>;
  platform?: (platform: FakePlatform) => void;
};

/** Starts a worker in this process, with its own fake platform. */
export async function testWorker({
  runExecution,
  clock = systemClock,
  sandbox = { kind: "bwrap", features: [] },
  env = {},
  platform: prepare,
}: TestWorkerSettings): Promise<TestWorker> {
  const platform = await new FakePlatform().start();
  prepare?.(platform);
  const dir = await mkdtemp(join(tmpdir(), "millwright-worker-"));
  const config = loadConfig({
    MILLWRIGHT_URL: platform.url,
    MILLWRIGHT_WORKER_KEY: WORKER_KEY,
    MILLWRIGHT_WORKER_DIR: dir,
    MILLWRIGHT_WORKER_DRAIN: "50ms",
    ...env,
  });
  const log = createLogger({ service: "worker", level: "silent" });
  const worker = await startWorker({ config, sandbox, runExecution, clock, timers: systemTimers, log });
  return {
    platform,
    worker,
    dir,
    async close() {
      await worker.drain();
      await platform.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/**
 * Returns a sandbox without a process. It records the orders that it receives, and ends on the given order (default:
 * kill).
 */
export function fakeSandbox({ diesOn = "kill" }: { diesOn?: "terminate" | "kill" | "never" } = {}) {
  const orders: string[] = [];
  let vanish = (): void => {};
  const gone = new Promise<void>((resolve) => (vanish = resolve));
  const obey = (order: "terminate" | "kill") => () => {
    orders.push(order);
    if (order === diesOn) vanish();
  };
  const handle: SandboxHandle = { pid: process.pid, terminate: obey("terminate"), kill: obey("kill"), gone };
  return { orders, handle, vanish };
}

/** Returns an execution that the test controls: it waits until the test ends it. */
export function drivenExecution() {
  const contexts: ExecutionContext[] = [];
  const ends: ((result: ExecutionResult) => void)[] = [];
  const runExecution: RunExecution = (ctx) => {
    contexts.push(ctx);
    return new Promise((resolve, reject) => {
      ends.push(resolve);
      ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason as Error));
    });
  };
  return { contexts, ends, runExecution };
}
