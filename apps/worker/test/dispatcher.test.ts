import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { Code } from "@connectrpc/connect";
import { systemClock } from "@millwright/clock";
import { createLogger } from "@millwright/telemetry";
import { eventually } from "@millwright/testing";
import { openBackend } from "../src/backends/open-backend.ts";
import { startDispatcher } from "../src/compose-dispatcher.ts";
import { loadConfig } from "../src/config.ts";
import type { RunningWorker } from "../src/running-worker.ts";
import { identify } from "../src/state/process-identity.ts";
import { systemTimers } from "../src/time/timers.ts";
import { FakePlatform, refusal, WORKER_KEY } from "./fake-platform.ts";

let platform: FakePlatform;
let dir: string;
let workers: RunningWorker[] = [];
beforeEach(async () => {
  platform = await new FakePlatform().start();
  dir = await mkdtemp(join(tmpdir(), "millwright-dispatcher-"));
});
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.stopNow()));
  workers = [];
  await platform.stop();
  await rm(dir, { recursive: true, force: true, maxRetries: 5 });
});

const file = (name: string): string => join(dir, name);

/** Starts a worker with the command backend. Each command writes its input to a separate file. */
async function dispatching(env: Record<string, string> = {}): Promise<RunningWorker> {
  const config = loadConfig({
    PATH: process.env["PATH"] ?? "",
    MILLWRIGHT_URL: platform.url,
    MILLWRIGHT_WORKER_KEY: WORKER_KEY,
    MILLWRIGHT_WORKER_DIR: file("state"),
    MILLWRIGHT_WORKER_ID: "depot",
    MILLWRIGHT_BACKEND: "command",
    MILLWRIGHT_BACKEND_DISPATCH_COMMAND: `cat > ${file("dispatch-$MILLWRIGHT_EXECUTION_ID-$MILLWRIGHT_ATTEMPT.new")} && mv ${file("dispatch-$MILLWRIGHT_EXECUTION_ID-$MILLWRIGHT_ATTEMPT.new")} ${file("dispatch-$MILLWRIGHT_EXECUTION_ID-$MILLWRIGHT_ATTEMPT")}`,
    MILLWRIGHT_BACKEND_CANCEL_COMMAND: `cat >> ${file("cancel-$MILLWRIGHT_EXECUTION_ID-$MILLWRIGHT_ATTEMPT")}`,
    ...env,
  });
  const log = createLogger({ service: "worker", level: "silent" });
  const base = { clock: systemClock, timers: systemTimers, log };
  const worker = await startDispatcher({ ...base, config, backend: (await openBackend(config, base))! });
  workers.push(worker);
  return worker;
}

type Payload = { env: { MILLWRIGHT_URL: string; MILLWRIGHT_WORKER_OFFER: string } } & Record<string, unknown>;
const dispatched = async (name: string): Promise<Payload> => {
  await eventually(() => existsSync(file(name)));
  return JSON.parse(readFileSync(file(name), "utf8")) as Payload;
};
const cancels = (name: string) =>
  existsSync(file(name))
    ? readFileSync(file(name), "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as { reason: string })
    : [];
const records = async () => (await readdir(file("state/dispatched"))).filter((name) => name.endsWith(".json"));
const watchedNow = () =>
  platform.heartbeats.at(-1)?.watched.map(({ executionId, attempt }) => `${executionId}-${attempt}`);

test("the command gets the whole execution, with the offer on standard input only, and the execution is watched until it has ended elsewhere", async () => {
  await dispatching();
  const attempt = platform.offer(7n, { dockerImage: "node:24" });
  const { env, ...payload } = await dispatched("dispatch-7-1");
  expect(payload).toEqual({
    version: 1,
    run_id: "run-7",
    execution_id: "7",
    attempt: 1,
    worker_id: "depot",
    server_root_url: platform.url,
    title: "",
    harness: "oz",
    docker_image: "node:24",
  });
  expect(env).toEqual({ MILLWRIGHT_URL: platform.url, MILLWRIGHT_WORKER_OFFER: attempt.offerToken });
  expect(platform.calls).not.toContain("accept");
  await eventually(() => watchedNow()?.includes("7-1"));
  platform.takeOffer(attempt.offerToken!, "machine");
  const { length } = platform.heartbeats;
  await eventually(() => platform.heartbeats.length > length + 1);
  expect(watchedNow()).toEqual(["7-1"]);
  expect(
    JSON.stringify(
      await Promise.all((await records()).map(async (name) => readFileSync(file(`state/dispatched/${name}`), "utf8"))),
    ),
  ).not.toContain("mwo_");
  attempt.state = "ended";
  await eventually(async () => (await records()).length === 0);
  expect(cancels("cancel-7-1")).toEqual([]); // it ended normally
  expect(platform.failedDispatches).toEqual([]);
});

test("no more is claimed than there are slots, and dispatched executions count", async () => {
  await dispatching({ MILLWRIGHT_WORKER_SLOTS: "1" });
  const first = platform.offer(1n);
  await dispatched("dispatch-1-1");
  platform.takeOffer(first.offerToken!, "machine");
  const second = platform.offer(2n);
  const { length } = platform.heartbeats;
  await eventually(() => platform.heartbeats.length > length + 2);
  expect([second.state, platform.heartbeats.at(-1)?.freeSlots]).toEqual(["offered", 0]);
  first.state = "ended";
  await dispatched("dispatch-2-1");
});

describe("a dispatch that fails", () => {
  test.each([
    [
      "with its exit code and its output, without the offer",
      { MILLWRIGHT_BACKEND_DISPATCH_COMMAND: `grep -o 'mwo_[^"]*'; echo no quota >&2; exit 3` },
      "dispatch_command",
      /^The dispatch command ended with exit code 3\. Its output: \*\*\*\nno quota$/,
    ],
    [
      "by time",
      { MILLWRIGHT_BACKEND_DISPATCH_COMMAND: "sleep 600 & wait", MILLWRIGHT_BACKEND_COMMAND_TIMEOUT: "300ms" },
      "dispatch_timeout",
      /^The dispatch command took longer than/,
    ],
    [
      "because no machine accepts it",
      { MILLWRIGHT_BACKEND_START_TIMEOUT: "200ms" },
      "start_timeout",
      /^The machine did not accept its run within/,
    ],
  ])("%s is reported to the platform, and remaining machines are cancelled", async (_how, env, reason, message) => {
    await dispatching(env);
    platform.offer(1n);
    await eventually(() => platform.failedDispatches.length === 1);
    expect(platform.failedDispatches[0]).toMatchObject({ executionId: 1n, attempt: 1, reason, taken: false });
    expect(platform.failedDispatches[0]!.message).toMatch(message);
    await eventually(async () => (await records()).length === 0);
    expect(cancels("cancel-1-1").map((cancel) => cancel.reason)).toEqual(["not_started"]);
  });

  test("but was received is still watched", async () => {
    await dispatching({ MILLWRIGHT_BACKEND_DISPATCH_COMMAND: "exit 1" });
    platform.onCall = (method) => {
      const entry = platform.attempts.get("1-1");
      if (method === "failDispatch" && entry?.offerToken && entry.holder === undefined)
        platform.takeOffer(entry.offerToken, "machine");
    };
    const attempt = platform.offer(1n);
    await eventually(() => platform.failedDispatches.length === 1);
    const { length } = platform.heartbeats;
    await eventually(() => platform.heartbeats.length > length + 1);
    expect([watchedNow(), attempt.state, cancels("cancel-1-1")]).toEqual([["1-1"], "accepted", []]);
  });

  test("is reported again when the response was lost", async () => {
    await dispatching({ MILLWRIGHT_BACKEND_DISPATCH_COMMAND: "exit 1" });
    platform.failNext("failDispatch", "after");
    platform.offer(1n);
    await eventually(() => cancels("cancel-1-1").length === 1);
    expect(platform.failedDispatches.map((cancel) => cancel.reason)).toEqual(["dispatch_command", "dispatch_command"]);
  });
});

describe("a cancelled run", () => {
  test("that no machine has accepted is cancelled and completed by the worker", async () => {
    await dispatching();
    const attempt = platform.offer(1n);
    await dispatched("dispatch-1-1");
    attempt.state = "stopped";
    await eventually(() => attempt.completions.length === 1);
    expect(attempt.completions[0]).toMatchObject({ outcome: "CANCELLED", lastClientSeq: 0n });
    expect(cancels("cancel-1-1").map((cancel) => cancel.reason)).toEqual(["cancelled"]);
  });

  test("that a machine has accepted ends by itself; then its machine is cancelled", async () => {
    await dispatching();
    const attempt = platform.offer(1n);
    await dispatched("dispatch-1-1");
    platform.takeOffer(attempt.offerToken!, "machine");
    attempt.state = "stopped";
    const { length } = platform.heartbeats;
    await eventually(() => platform.heartbeats.length > length + 2);
    expect([cancels("cancel-1-1"), attempt.completions]).toEqual([[], []]);
    attempt.state = "ended";
    await eventually(() => cancels("cancel-1-1").length === 1);
    expect(attempt.completions).toEqual([]);
  });
});

test("the machine of a lost attempt is cancelled, again while the cancel command fails", async () => {
  await writeFile(file("broken"), "");
  await dispatching({
    MILLWRIGHT_BACKEND_CANCEL_COMMAND: `test ! -e ${file("broken")} || { rm ${file("broken")}; exit 1; }; cat >> ${file("cancel-1-1")}`,
  });
  const attempt = platform.offer(1n);
  await dispatched("dispatch-1-1");
  platform.takeOffer(attempt.offerToken!, "machine");
  attempt.state = "lost";
  await eventually(() => cancels("cancel-1-1").length === 1);
  await eventually(async () => (await records()).length === 0);
  expect(cancels("cancel-1-1").map((cancel) => cancel.reason)).toEqual(["lost"]);
  expect(existsSync(file("broken"))).toBe(false);
});

test("background processes of a command continue and may continue to write", async () => {
  await dispatching({
    MILLWRIGHT_BACKEND_DISPATCH_COMMAND: `(until test -e ${file("go")}; do sleep 0.05; done; echo still here; echo yes > ${file("went-on")}) & cat > ${file("new")}; mv ${file("new")} ${file("dispatch-1-1")}`,
  });
  platform.offer(1n);
  await dispatched("dispatch-1-1");
  await writeFile(file("go"), "");
  await eventually(() => existsSync(file("went-on")));
  expect(readFileSync(file("state/dispatched/1-1.log"), "utf8")).toContain("still here");
});

describe("a worker that is restarted", () => {
  test("registers as the same worker and watches what it had dispatched, accepted or not", async () => {
    const first = await dispatching();
    const taken = platform.offer(1n);
    await dispatched("dispatch-1-1");
    platform.takeOffer(taken.offerToken!, "machine");
    const waiting = platform.offer(2n);
    await dispatched("dispatch-2-1");
    await first.stopNow();
    await first.ended;
    const { length } = platform.heartbeats;
    await dispatching();
    await eventually(() => platform.heartbeats.length > length && watchedNow()?.length === 2);
    expect(new Set(platform.registrations.map(({ instanceUid }) => instanceUid)).size).toBe(1);
    taken.state = "ended";
    waiting.state = "lost";
    await eventually(async () => (await records()).length === 0);
    expect([cancels("cancel-1-1").length, cancels("cancel-2-1").length]).toEqual([0, 1]);
  });

  test("returns after the restart what no machine has accepted in time", async () => {
    const first = await dispatching();
    platform.offer(1n);
    await dispatched("dispatch-1-1");
    await first.stopNow();
    await first.ended;
    await dispatching({ MILLWRIGHT_BACKEND_START_TIMEOUT: "1ms" });
    await eventually(() => platform.failedDispatches.length === 1);
    expect(platform.failedDispatches[0]).toMatchObject({ executionId: 1n, reason: "start_timeout" });
  });
});

describe("a worker that drains", () => {
  test("ends when everything is accepted, and cancels nothing", async () => {
    const worker = await dispatching();
    const attempt = platform.offer(1n);
    await dispatched("dispatch-1-1");
    const drained = worker.drain();
    await eventually(() => platform.heartbeats.at(-1)?.state === "DRAINING");
    platform.takeOffer(attempt.offerToken!, "machine");
    await drained;
    expect(await worker.ended).toEqual({});
    expect([attempt.state, cancels("cancel-1-1")]).toEqual(["accepted", []]);
  });

  test("returns what no machine has accepted in time, and ends that machine", async () => {
    const worker = await dispatching({ MILLWRIGHT_WORKER_DRAIN: "50ms" });
    const [waiting, taken] = [platform.offer(1n), platform.offer(2n)];
    await dispatched("dispatch-1-1");
    await dispatched("dispatch-2-1");
    platform.takeOffer(taken.offerToken!, "machine");
    await worker.drain();
    expect(await worker.ended).toEqual({});
    expect(platform.returned).toMatchObject([
      { executionId: 1n, attempt: 1, reason: "worker_stopping", failure: false },
    ]);
    expect([waiting.state, taken.state]).toEqual(["lost", "accepted"]);
    expect([cancels("cancel-1-1").length, cancels("cancel-2-1").length]).toEqual([1, 0]);
  });
});

test("a key that the platform rejects ends the worker", async () => {
  platform.failNext("register", "before", refusal("unauthenticated", "key_invalid", Code.Unauthenticated));
  const worker = await dispatching();
  expect((await worker.ended).refusal).toMatchObject({ reason: "key_invalid" });
});

test("two workers cannot share a directory, but a worker can use that of a dead one", async () => {
  await dispatching();
  const other = spawn("sleep", ["600"]);
  await writeFile(file("state/dispatched/owner"), JSON.stringify(identify(other.pid!)));
  await expect(dispatching()).rejects.toThrow(/used by another worker .*MILLWRIGHT_WORKER_DIR/);
  const gone = once(other, "exit");
  other.kill("SIGKILL");
  await gone;
  await dispatching();
});

test("an incomplete configuration of a backend is rejected by name", () => {
  const load = (env: Record<string, string>) => () =>
    loadConfig({ MILLWRIGHT_URL: "http://x", MILLWRIGHT_WORKER_KEY: "k", ...env });
  expect(load({ MILLWRIGHT_BACKEND: "docker" })).toThrow("MILLWRIGHT_BACKEND");
  expect(load({ MILLWRIGHT_BACKEND: "command" })).toThrow("MILLWRIGHT_BACKEND_DISPATCH_COMMAND");
  expect(
    load({
      MILLWRIGHT_BACKEND: "command",
      MILLWRIGHT_BACKEND_DISPATCH_COMMAND: "x",
      MILLWRIGHT_WORKER_OFFER: `mwo_1_1_${"x".repeat(43)}`,
    }),
  ).toThrow("exclude each other");
});
