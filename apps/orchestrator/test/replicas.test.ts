/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { afterEach, expect } from "@jest/globals";
import { NatsLink } from "@millwright/events";
import { eventually, memoryLog, natsServer, needs } from "@millwright/testing";
import { topics } from "../src/storage/wakeups.ts";
import { DEFAULT_TIMINGS } from "../src/runs/domain/timings.ts";
import { ActiveExecution } from "./support/fake-worker.ts";
import { aCaller, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

/** No replica polls during these tests, so every change that a replica sees was notified. */
const timings = { ...DEFAULT_TIMINGS, pollMs: 3_600_000, keepAliveMs: 3_600_000, leaseWaitMaxMs: 3_600_000 };

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

/** Starts two replicas on one database, connected by NATS. */
async function twoReplicas(): Promise<[TestPlatform, TestPlatform]> {
  const nats = await natsServer();
  closers.push(() => nats.close());
  const aReplica = async (beside?: TestPlatform): Promise<TestPlatform> => {
    const link = NatsLink.open(nats.url, "test", memoryLog());
    closers.push(() => link.close());
    const replica = await testPlatform({
      timings,
      replicas: link.replicaNotifier("orchestrator"),
      liveTextBroadcast: link.replicaBroadcast("orchestrator", "live-text"),
      ...(beside && { beside }),
    });
    closers.push(() => replica.close());
    replica.life.start();
    await (await link.connection()).flush(); // it receives notifications from now on
    return replica;
  };
  const here = await aReplica();
  return [here, await aReplica(here)];
}

const signal = new AbortController().signal;

needs(
  "nats-server",
  "a run that is created at one replica is offered at once to the worker that waits at another",
  async () => {
    const [here, there] = await twoReplicas();
    const caller = aCaller();
    const worker = await there.worker({ teamUid: teamOf(caller) });
    const poll = there.life.worker.lease(worker.session, 1, timings.pollMs, signal);
    const run = await here.run(caller);
    const [offer] = await poll;
    const { assignments } = await there.life.worker.accept(worker.session, [offer!]);
    expect(assignments.map(({ job }) => job.run.runUid)).toEqual([run.uid]);
  },
);

needs(
  "nats-server",
  "a cancel at one replica reaches the worker that is connected to another, and the end of the run reaches its readers",
  async () => {
    const [here, there] = await twoReplicas();
    const caller = aCaller();
    const worker = await there.worker({ teamUid: teamOf(caller) });
    const run = await there.run(caller);
    const offers = await there.claim(worker);
    const { assignments } = await there.life.worker.accept(worker.session, offers);
    await new ActiveExecution(there, worker.session, assignments[0]!).start();
    const ended = new AbortController();
    const stream = there.life.worker.watch(worker.session, ended.signal)[Symbol.asyncIterator]();
    await stream.next(); // the stream is open
    const reader = there.life.wakeups.wait(topics.runEvents(run.uid), timings.pollMs, ended.signal);
    const directives = (async () => {
      for (let update = await stream.next(); !update.done; update = await stream.next())
        if (update.value.directives.length > 0) return update.value.directives;
      return [];
    })();
    await here.life.cancelRun(caller, { runUid: run.uid, tree: false });
    expect((await directives).map(({ kind }) => kind)).toEqual(["cancel"]);
    await reader;
    ended.abort();
  },
);

needs("nats-server", "a model's text at one replica reaches the watchers at another, once", async () => {
  const [here, there] = await twoReplicas();
  const caller = aCaller();
  const worker = await here.worker({ teamUid: teamOf(caller) });
  const run = await here.run(caller);
  const { assignments } = await here.life.worker.accept(worker.session, await here.claim(worker));
  const execution = await new ActiveExecution(here, worker.session, assignments[0]!).start();
  const received = { here: [] as string[], there: [] as string[] };
  here.life.liveTexts.listen(run.uid, ({ text }) => received.here.push(text));
  there.life.liveTexts.listen(run.uid, ({ text }) => received.there.push(text));
  for (const text of ["one", "two"])
    await here.life.worker.publishTextDelta(worker.session, { ...execution.ref, stepId: "s", offset: 0, text });
  await eventually(() => received.there.length === 2);
  expect(received).toEqual({ here: ["one", "two"], there: ["one", "two"] });
});
