import { EventEmitter, once } from "node:events";
import { describe, expect, test } from "@jest/globals";
import { Lifecycle, stopOnSignals, type Readiness } from "./index.ts";

function recorder() {
  const steps: string[] = [];
  const part = (name: string) => ({
    start: () => void steps.push(`start ${name}`),
    stop: () => void steps.push(`stop ${name}`),
  });
  return { steps, part };
}
const never = () => new Promise<void>(() => {});

describe("a lifecycle", () => {
  test("starts in order and stops once, in reverse", async () => {
    const { steps, part } = recorder();
    const lifecycle = new Lifecycle().add("a", part("a")).add("b", part("b"));
    await lifecycle.start();
    await Promise.all([lifecycle.stop(), lifecycle.stop()]);
    expect(steps).toEqual(["start a", "start b", "stop b", "stop a"]);
  });

  test("stops the started parts when a part fails to start", async () => {
    const { steps, part } = recorder();
    const lifecycle = new Lifecycle()
      .add("a", part("a"))
      .add("bad", { start: () => Promise.reject(new Error("no port")) })
      .add("c", part("c"));
    await expect(lifecycle.start()).rejects.toThrow("no port");
    expect(steps).toEqual(["start a", "stop a"]);
  });

  /** A part that finishes starting when the test resolves it. */
  function slowToStart() {
    const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const start = () => {
      begun.resolve();
      return ended.promise;
    };
    return { start, begun: begun.promise, finish: () => ended.resolve() };
  }

  test("that is stopped while a part is starting waits for it and stops it", async () => {
    const { steps, part } = recorder();
    const slow = slowToStart();
    const lifecycle = new Lifecycle()
      .add("a", part("a"))
      .add("slow", { ...part("slow"), start: slow.start })
      .add("c", part("c"));
    const starting = lifecycle.start();
    await slow.begun;
    const stopping = lifecycle.stop();
    slow.finish();
    expect(await stopping).toEqual([]);
    await starting;
    expect(steps).toEqual(["start a", "stop slow", "stop a"]);
  });

  test("names a part that never finishes starting, and stops the others", async () => {
    const { steps, part } = recorder();
    const slow = slowToStart();
    const lifecycle = new Lifecycle().add("a", part("a")).add("slow", slow);
    void lifecycle.start();
    await slow.begun;
    expect(await lifecycle.stop(20)).toEqual(["slow"]);
    expect(steps).toEqual(["start a", "stop a"]);
  });

  test("stops the others when one fails or hangs, and names that one", async () => {
    const { steps, part } = recorder();
    const lifecycle = new Lifecycle()
      .add("a", part("a"))
      .add("hangs", { stop: never })
      .add("bad", { stop: () => Promise.reject(new Error("x")) });
    await lifecycle.start();
    expect(await lifecycle.stop(20)).toEqual(["bad", "hangs"]);
    expect(steps).toEqual(["start a", "stop a"]);
  });

  test("is ready when started, every check passes, and not stopping", async () => {
    let up = false;
    const lifecycle = new Lifecycle().add("database", { ready: () => up }).add("quiet", {});
    expect(await lifecycle.ready()).toEqual({ ready: false, checks: { database: "failed", quiet: "ok" } });
    up = true;
    expect((await lifecycle.ready()).ready).toBe(false);
    await lifecycle.start();
    expect(await lifecycle.ready()).toEqual({ ready: true, checks: { database: "ok", quiet: "ok" } });
    await lifecycle.stop();
    expect((await lifecycle.ready()).ready).toBe(false);
  });

  test("a check that throws is a failed check", async () => {
    const lifecycle = new Lifecycle().add("database", { ready: () => Promise.reject(new Error("gone")) });
    await lifecycle.start();
    expect(await lifecycle.ready()).toEqual({ ready: false, checks: { database: "failed" } });
  });
});

describe("a signal", () => {
  const quiet = { info: () => {}, warn: () => {} };
  const target = () => {
    const process = Object.assign(new EventEmitter(), { exit: (code: number) => void process.emit("exit", code) });
    return { exited: once(process, "exit"), process };
  };

  test.each(["SIGTERM", "SIGINT"])("%s stops everything and exits 0", async (signal) => {
    const { steps, part } = recorder();
    const lifecycle = new Lifecycle().add("a", part("a"));
    await lifecycle.start();
    const { exited, process } = target();
    stopOnSignals(lifecycle, quiet, { target: process });
    process.emit(signal);
    expect(await exited).toEqual([0]);
    expect(steps).toEqual(["start a", "stop a"]);
  });

  test("drains the parts before they stop, unready and still serving", async () => {
    const { steps, part } = recorder();
    const readiness: Promise<Readiness>[] = [];
    const drain = () => {
      steps.push("drain a");
      readiness.push(lifecycle.ready());
    };
    const lifecycle = new Lifecycle().add("a", { ...part("a"), drain }).add("b", part("b"));
    await lifecycle.start();
    const { exited, process } = target();
    stopOnSignals(lifecycle, quiet, { drainMs: 1, target: process });
    process.emit("SIGTERM");
    expect(await exited).toEqual([0]);
    expect(steps).toEqual(["start a", "start b", "drain a", "stop b", "stop a"]);
    expect(await readiness[0]).toEqual({ ready: false, checks: { a: "ok", b: "ok" } });
  });

  test("exits at once when it comes again", async () => {
    let release = () => {};
    const blocked = new Promise<void>((resolve) => (release = resolve));
    const lifecycle = new Lifecycle().add("slow", { stop: () => blocked });
    await lifecycle.start();
    const { exited, process } = target();
    stopOnSignals(lifecycle, quiet, { target: process });
    process.emit("SIGTERM");
    process.emit("SIGINT");
    expect(await exited).toEqual([1]);
    release();
    await lifecycle.stop();
  });
});
