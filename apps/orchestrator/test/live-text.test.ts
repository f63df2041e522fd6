import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { systemClock } from "@millwright/clock";
import { domainError, eventually } from "@millwright/testing";
import type { RunEvent } from "../src/runs/domain/run-events.ts";
import type { Run } from "../src/runs/domain/run.ts";
import { LiveTexts, type LiveText } from "../src/runs/live-texts.ts";
import { watchRun } from "../src/runs/usecases/watch-run.ts";
import { acceptExecution, startExecution } from "./support/fake-worker.ts";
import { aCaller, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform();
});
afterAll(() => platform.close());

const piece = (offset: number, text: string) => ({ stepId: "step", offset, text });

test("a model's text reaches the watchers of its run while its attempt owns the execution, and is not stored", async () => {
  const caller = aCaller();
  const [worker, otherWorker] = [
    await platform.worker({ teamUid: teamOf(caller) }),
    await platform.worker({ teamUid: teamOf(caller) }),
  ];
  const run = await platform.run(caller);
  const execution = await startExecution(platform, worker);
  const received: LiveText[] = [];
  const stop = platform.life.liveTexts.listen(run.uid, (text) => received.push(text));
  const publish = (session: typeof worker.session, delta: ReturnType<typeof piece>, attempt = execution.ref.attempt) =>
    platform.life.worker.publishTextDelta(session, { ...execution.ref, attempt, ...delta });
  const before = (await platform.events(run.uid)).length;

  await publish(worker.session, piece(0, "I read."));
  await publish(otherWorker.session, piece(0, "I am somebody else."));
  await publish(worker.session, piece(0, "I am too late."), execution.ref.attempt + 1);
  await expect(publish(worker.session, piece(0, "x".repeat(40_000)))).rejects.toEqual(
    domainError({ kind: "invalid_argument", reason: "text_too_long" }),
  );
  await platform.life.cancelRun(caller, { runUid: run.uid, tree: false });
  await publish(worker.session, piece(7, " I was cancelled."));
  expect(received).toEqual([{ runUid: run.uid, ...execution.ref, ...piece(0, "I read.") }]);
  expect((await platform.events(run.uid)).length).toBe(before + 1); // the event of the run's end

  stop();
  await platform.run(caller);
  const next = await acceptExecution(platform, worker);
  await platform.life.worker.publishTextDelta(worker.session, { ...next.ref, ...piece(0, "No one listens.") });
  expect(received).toHaveLength(1);
});

/** Creates a reader of a run, with its dependencies in memory. */
function aReader() {
  const liveTexts = new LiveTexts();
  const events: RunEvent[] = [];
  let isSettled = false;
  let wake = (): void => {};
  const deps = {
    getVisibleRun: async () => ({ uid: "run" }) as unknown as Run,
    isSettled: async () => isSettled,
    listRunEvents: async (_uid: string, after: number) => events.filter(({ seq }) => seq > after),
    wakeups: {
      wait: (_topic: string, _ms: number, signal?: AbortSignal) =>
        new Promise<void>((resolve) => ((wake = resolve), signal?.addEventListener("abort", () => resolve()))),
    },
    clock: systemClock,
    timings: { keepAliveMs: 3_600_000, pollMs: 3_600_000 },
    liveTexts,
  };
  const add = (isLast = false) => {
    events.push({ seq: events.length + 1 } as RunEvent);
    isSettled = isLast;
    wake();
  };
  const publish = (text: string) => liveTexts.publish({ runUid: "run", executionId: 1, attempt: 1, ...piece(0, text) });
  return { deps, add, publish };
}

test("a reader gets events and the texts published between them, up to the last event", async () => {
  const { deps, add, publish } = aReader();
  const received: string[] = [];
  const reading = (async () => {
    for await (const { events, texts } of watchRun(deps, aCaller(), "run", 0, new AbortController().signal))
      received.push(...events.map(({ seq }) => String(seq)), ...texts.map(({ text }) => text));
  })();
  for (const [n, act] of [() => add(), () => publish("a"), () => publish("b"), () => add()].entries()) {
    act();
    await eventually(() => received.length === n + 1);
  }
  add(true);
  await reading;
  expect(received).toEqual(["1", "a", "b", "2", "3"]);
});

test("a reader that does not read buffers a bounded amount, and one that has left buffers nothing", async () => {
  const { deps, add, publish } = aReader();
  const reader = watchRun(deps, aCaller(), "run", 0, new AbortController().signal);
  add();
  expect((await reader.next()).value).toMatchObject({ events: [{ seq: 1 }] });
  for (let n = 0; n < 1_000; n++) publish(String(n));
  const { value } = await reader.next();
  expect(value?.texts.length).toBe(64);
  await reader.return(undefined);
  publish("gone");
  expect(await reader.next()).toEqual({ done: true, value: undefined });
});
