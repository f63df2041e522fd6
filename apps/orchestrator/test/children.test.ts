import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { acceptExecution, startExecution, ActiveExecution } from "./support/fake-worker.ts";
import { aCaller, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform();
});
afterAll(() => platform.close());

async function family(childCount: number) {
  const caller = aCaller();
  const worker = await platform.worker({ teamUid: teamOf(caller) });
  const parent = await platform.run(caller, { prompt: "Delegate." });
  const execution = await startExecution(platform, worker);
  const children = [];
  for (let n = 0; n < childCount; n++)
    children.push(await platform.run(caller, { parentRunUid: parent.uid, title: `Part ${n}` }));
  const stateOf = async (uid: string) => (await platform.getRun(caller, uid)).state;
  return { caller, worker, parent, execution, children, stateOf };
}

const ALL = { waitFor: { policy: "all", runUids: [] } } as const;
const ANY = { waitFor: { policy: "any", runUids: [] } } as const;

test("a waiting parent owns no lease and resumes after its last child ends", async () => {
  const { caller, worker, parent, execution, children, stateOf } = await family(2);
  expect(await execution.complete("WAITING", ALL)).toMatchObject({ error: "" });
  expect(await platform.getRun(caller, parent.uid)).toMatchObject({
    state: "INPROGRESS",
    status: { message: "Waiting for 2 child runs." },
  });
  expect(await platform.inUse(teamOf(caller))).toBe(0);
  expect(await platform.life.getQueueStatus(caller, parent.uid)).toMatchObject({ reason: "waiting_for_children" });
  await (await startExecution(platform, worker)).complete("DONE");
  expect(await platform.getRun(caller, parent.uid)).toMatchObject({
    state: "INPROGRESS",
    status: { message: "Waiting for 1 child run." },
  });
  await (await startExecution(platform, worker)).complete("BLOCKED", { message: "Which colour?" });
  expect(await stateOf(parent.uid)).toBe("QUEUED");
  const woken = await startExecution(platform, worker);
  expect(woken.assignment).toMatchObject({ executionSeq: 2, job: { run: { runUid: parent.uid } } });
  expect(woken.assignment.inputs).toMatchObject([{ kind: "children" }]);
  expect(woken.assignment.inputs[0]!.text).toBe(
    `Child runs have ended:\n- ${children[0]!.uid} "Part 0": SUCCEEDED\n- ${children[1]!.uid} "Part 1": BLOCKED – Which colour?`,
  );
  expect(
    (await platform.kinds(parent.uid)).filter(
      (kind) => kind === "child_finished" || kind === "run_waiting" || kind === "run_queued",
    ),
  ).toEqual(["run_waiting", "child_finished", "child_finished", "run_queued"]);
});

test("children that end before the wait resume the parent at once", async () => {
  const { caller, worker, parent, execution, stateOf } = await family(1);
  const child = await acceptExecution(platform, worker);
  await child.complete("FAILED", { error: { code: "invalid_request", message: "No.", retryable: false, reason: "" } });
  await execution.complete("WAITING", ALL);
  expect(await stateOf(parent.uid)).toBe("QUEUED");
  const woken = await startExecution(platform, worker);
  expect(woken.assignment.inputs[0]!.text).toContain("FAILED – No.");
  expect((await platform.getRun(caller, parent.uid)).state).toBe("INPROGRESS");
  expect(await woken.complete("WAITING", ALL)).toMatchObject({ error: "" });
  expect((await startExecution(platform, worker)).assignment.inputs[0]!.text).toBe(
    "There was no child run to wait for.",
  );
});

test("waiting for any child ends with the first one, and each end is reported once", async () => {
  const { worker, parent, execution, children, stateOf } = await family(2);
  await execution.complete("WAITING", ANY);
  await (await acceptExecution(platform, worker)).complete("DONE");
  expect(await stateOf(parent.uid)).toBe("QUEUED");
  const second = await acceptExecution(platform, worker); // the child is served before its parent
  expect(second.assignment.job.run.runUid).toBe(children[1]!.uid);
  const woken = await startExecution(platform, worker);
  expect(woken.assignment.inputs[0]!.text).toContain("Part 0");
  await woken.complete("WAITING", ANY);
  expect(await stateOf(parent.uid)).toBe("INPROGRESS");
  await second.complete("DONE");
  const again = await startExecution(platform, worker);
  expect(again.assignment.inputs[0]!.text).toContain("Part 1");
  expect(again.assignment.inputs[0]!.text).not.toContain("Part 0");
});

test("resumes the parent exactly once if a child's end and its parent's wait race", async () => {
  for (let n = 0; n < 8; n++) {
    const { worker, parent, execution, stateOf } = await family(1);
    const child = await acceptExecution(platform, worker);
    await Promise.all([execution.complete("WAITING", ALL), child.complete("DONE")]);
    expect(await stateOf(parent.uid)).toBe("QUEUED");
    const woken = await startExecution(platform, worker);
    expect(woken.assignment.inputs).toHaveLength(1);
    expect(woken.assignment.executionSeq).toBe(2);
  }
});

test("a follow-up resumes a waiting parent, and its children continue", async () => {
  const { caller, worker, parent, execution, children, stateOf } = await family(1);
  await execution.complete("WAITING", ALL);
  const answer = await platform.life.createFollowup(caller, {
    target: { runUid: parent.uid },
    message: "How is it going?",
    mode: "normal",
    attachmentUids: [],
  });
  expect(answer.outcome).toBe("queue_pending");
  expect(await stateOf(parent.uid)).toBe("QUEUED");
  const child = await acceptExecution(platform, worker);
  const woken = await startExecution(platform, worker);
  expect(woken.assignment.inputs.map(({ text }) => text)).toEqual(["How is it going?"]);
  await woken.complete("WAITING", ALL);
  expect(await stateOf(parent.uid)).toBe("INPROGRESS");
  await child.complete("DONE");
  expect(await stateOf(parent.uid)).toBe("QUEUED");
  expect(await stateOf(children[0]!.uid)).toBe("SUCCEEDED");
});

test("a wait also ends for a cancelled, a lost and a continued child", async () => {
  const { caller, worker, parent, execution, children, stateOf } = await family(1);
  await execution.complete("WAITING", ALL);
  await platform.life.cancelRun(caller, { runUid: children[0]!.uid, tree: false });
  const woken = await startExecution(platform, worker);
  expect(woken.assignment.inputs[0]!.text).toContain("CANCELLED");
  await platform.life.createFollowup(caller, {
    target: { runUid: children[0]!.uid },
    message: "Go on.",
    mode: "normal",
    attachmentUids: [],
  });
  await woken.complete("WAITING", ALL);
  expect(await stateOf(parent.uid)).toBe("INPROGRESS");
  for (let n = 0; n < 3; n++) {
    const child = await startExecution(platform, worker);
    await platform.expire(child.ref.executionId);
    await platform.reaperIsAwake();
    await platform.life.reapOnce();
  }
  expect(await stateOf(children[0]!.uid)).toBe("ERROR");
  expect((await startExecution(platform, worker)).assignment.inputs[0]!.text).toContain("ERROR");
});

test("a tree of depth 5 finishes with one worker slot and every concurrency limit at 1", async () => {
  const own = await testPlatform({ limits: { team: 1, agent: 1, factory: 1 } });
  own.life.start();
  const caller = aCaller();
  const worker = await own.worker({ slots: 1 });
  const [agentUid, factoryUid] = [crypto.randomUUID(), crypto.randomUUID()];
  const request = { agentUid, factoryUid };
  const root = await own.run(caller, request);
  // Acts as the worker: each run at depth < 5 spawns one child in its first execution and waits for it; the deepest run
  // just completes.
  for (let executions = 0; executions < 50; executions++) {
    const offers = await own.life.worker.lease(worker.session, 1, 10_000, new AbortController().signal);
    expect(offers).toHaveLength(1);
    const { assignments } = await own.life.worker.accept(worker.session, offers);
    const execution = await new ActiveExecution(own, worker.session, assignments[0]!).start();
    expect(await own.inUse(teamOf(caller))).toBe(1);
    const { run } = assignments[0]!.job;
    const { depth } = await own.getRun(caller, run.runUid);
    if (depth < 5 && assignments[0]!.executionSeq === 1) {
      await own.run(caller, { ...request, parentRunUid: run.runUid });
      await execution.complete("WAITING", ALL);
    } else {
      await execution.complete("DONE");
    }
    if ((await own.getRun(caller, root.uid)).state === "SUCCEEDED") break;
  }
  const { rows } = await own.database.sql.query<{ state: string; n: number }>(
    "SELECT state, count(*) AS n FROM runs GROUP BY state",
  );
  expect(rows).toEqual([{ state: "SUCCEEDED", n: 6 }]);
  const { rows: caps } = await own.database.sql.query<{ in_use: number }>("SELECT DISTINCT in_use FROM capacity");
  expect(caps).toEqual([{ in_use: 0 }]);
  await own.close();
});

test("does not wait for unknown runs, nor for runs of others", async () => {
  const { execution, parent, stateOf } = await family(1);
  expect(await execution.complete("WAITING", { waitFor: { policy: "all", runUids: ["nobody"] } })).toMatchObject({
    error: "",
  });
  expect(await stateOf(parent.uid)).toBe("QUEUED");
});
