import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { formatTraceparent, inScope, NO_TRACER } from "@millwright/telemetry";
import { acceptExecution, startExecution } from "./support/fake-worker.ts";
import { aCaller, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform();
});
afterAll(() => platform.close());

const contextOf = (digit: string) => ({ traceId: digit.repeat(32), spanId: digit.repeat(16), isSampled: true });
const traceparent = (digit: string): string => formatTraceparent(contextOf(digit));
/** Makes a call in the scope of one request; `digit` identifies its trace. */
const inRequest = <T>(digit: string, f: () => Promise<T>): Promise<T> =>
  inScope({ trace: contextOf(digit), tracer: NO_TRACER, fields: {} }, f);

async function team() {
  const caller = aCaller();
  return { caller, worker: await platform.worker({ teamUid: teamOf(caller) }) };
}

/** Returns each lifecycle event of a run with its trace. */
const tracesOf = async (runUid: string): Promise<string[]> =>
  (await platform.facts(runUid)).map(({ type, payload, traceparent: trace }) =>
    [type.slice(15, -3), payload["to"] ?? payload["state"], trace?.[3]].filter(Boolean).join(" "),
  );

test("a worker gets the trace that its run came from, and its actions are recorded in it, whatever trace its calls have", async () => {
  const { caller, worker } = await team();
  const run = await inRequest("a", () => platform.run(caller));
  const execution = await inRequest("e", async () => {
    const started = await startExecution(platform, worker);
    await started.complete("DONE");
    return started;
  });
  expect(execution.assignment.job.traceparent).toBe(traceparent("a"));
  expect(await tracesOf(run.uid)).toEqual([
    "created a",
    "state_changed PENDING a",
    "state_changed CLAIMED a",
    "state_changed INPROGRESS a",
    "state_changed SUCCEEDED a",
    "finished SUCCEEDED a",
  ]);
});

test("a user's actions are recorded in the trace of the request", async () => {
  const { caller, worker } = await team();
  const run = await inRequest("a", () => platform.run(caller));
  await startExecution(platform, worker);
  await inRequest("b", () => platform.life.cancelRun(caller, { runUid: run.uid, tree: false }));
  expect((await tracesOf(run.uid)).slice(-2)).toEqual(["state_changed CANCELLED b", "finished CANCELLED b"]);
});

test("a follow-up to an ended run starts an execution in its own trace; a resumed parent continues in the run's", async () => {
  const { caller, worker } = await team();
  const parent = await inRequest("a", () => platform.run(caller));
  const execution = await startExecution(platform, worker);
  const child = await inRequest("b", () => platform.run(caller, { parentRunUid: parent.uid }));
  await execution.complete("WAITING", { waitFor: { policy: "all", runUids: [] } });
  const childExecution = await startExecution(platform, worker);
  expect([childExecution.assignment.job.run.runUid, childExecution.assignment.job.traceparent]).toEqual([
    child.uid,
    traceparent("b"),
  ]);
  await childExecution.complete("DONE");
  const woken = await startExecution(platform, worker);
  expect([woken.assignment.job.run.runUid, woken.assignment.job.traceparent]).toEqual([parent.uid, traceparent("a")]);
  await woken.complete("DONE");

  await inRequest("d", () =>
    platform.life.createFollowup(caller, {
      target: { runUid: parent.uid },
      message: "And then?",
      mode: "normal",
      attachmentUids: [],
    }),
  );
  expect((await acceptExecution(platform, worker)).assignment.job.traceparent).toBe(traceparent("d"));
});

test("a run that no request created has no trace", async () => {
  const { caller, worker } = await team();
  await platform.run(caller);
  expect((await acceptExecution(platform, worker)).assignment.job.traceparent).toBe("");
});
