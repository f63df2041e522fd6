import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { ReturnedLease } from "../../src/leases/usecases/return-leases.ts";
import { acceptExecution, startExecution, type ActiveExecution } from "../support/fake-worker.ts";
import { aCaller, resolvedFor, teamOf, testPlatform, type TestPlatform } from "../support/platform.ts";

const STOPPING = { reason: "worker_stopping", message: "The worker is stopping.", isFailure: false };
const FAILED = { reason: "sandbox_start_failed", message: "The sandbox did not start within 15 s.", isFailure: true };

let platform: TestPlatform;
let careful: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform();
  careful = await testPlatform({
    resolveRun: async (_caller, request) => {
      const resolved = resolvedFor(request);
      return { ...resolved, frozen: { ...resolved.frozen, on_worker_loss: "fail" } };
    },
  });
});
afterAll(() => Promise.all([platform.close(), careful.close()]));

async function team(on = platform) {
  const caller = aCaller();
  const worker = await on.worker({ teamUid: teamOf(caller) });
  const run = await on.run(caller);
  const returnLease = ({ session, ref }: ActiveExecution, how: Omit<ReturnedLease, "executionId" | "attempt">) =>
    on.life.worker.returnLeases(session, [{ ...ref, ...how }]);
  return { caller, worker, run, returnLease, now: () => on.getRun(caller, run.uid) };
}

test("any number of planned worker stops queues a run again at once, counts no loss, and the agent continues", async () => {
  const { caller, worker, run, returnLease, now } = await team();
  for (let attempt = 1; attempt <= 5; attempt++) {
    const execution = await startExecution(platform, worker);
    expect(execution.assignment).toMatchObject({ attempt, executionSeq: 1, isRestarted: attempt > 1 });
    await returnLease(execution, STOPPING);
    expect(await now()).toMatchObject({ state: "QUEUED", isSandboxRunning: false });
    expect(await platform.inUse(teamOf(caller))).toBe(0);
    expect(await execution.append(execution.event("warning", { text: "late" }))).toMatchObject({ error: "LEASE_LOST" });
  }
  const last = await startExecution(platform, worker);
  expect(await last.complete("DONE")).toMatchObject({ error: "" });
  const events = await platform.events(run.uid);
  expect(events.filter(({ isSuperseded }) => isSuperseded)).toEqual([]);
  expect(events.filter(({ kind }) => kind === "worker_stopped").map(({ payload }) => payload)).toMatchObject(
    [1, 2, 3, 4, 5].map((attempt) => ({ reason: "worker_stopping", attempt })),
  );
  expect((await now()).state).toBe("SUCCEEDED");
});

test("a run returned during its setup is set up again, and gets its prompt and follow-ups", async () => {
  const { caller, worker, run, returnLease } = await team();
  const first = await acceptExecution(platform, worker);
  await platform.life.createFollowup(caller, {
    target: { runUid: run.uid },
    message: "More.",
    mode: "normal",
    attachmentUids: [],
  });
  await returnLease(first, STOPPING);
  const next = await acceptExecution(platform, worker);
  expect(next.assignment.inputs.map(({ kind }) => kind)).toEqual(["prompt", "followup"]);
});

test("an unacknowledged interrupt of a returned attempt is sent to the next one", async () => {
  const { caller, worker, run, returnLease } = await team();
  const first = await startExecution(platform, worker);
  await platform.life.interruptRun(caller, { runUid: run.uid });
  await returnLease(first, STOPPING);
  expect((await acceptExecution(platform, worker)).assignment.directives).toMatchObject([
    { kind: "interrupt", attempt: 2 },
  ]);
});

test("an attempt that its worker cannot execute is retried three times with its cause, then ends the run with it", async () => {
  const { worker, run, returnLease, now } = await team();
  for (let attempt = 1; attempt <= 4; attempt++) {
    expect((await now()).state).toBe("QUEUED");
    await returnLease(await acceptExecution(platform, worker), FAILED);
  }
  expect(await now()).toMatchObject({
    state: "ERROR",
    status: { message: expect.stringContaining(FAILED.message), errorCode: "resource_unavailable", retryable: true },
  });
  const events = await platform.events(run.uid);
  expect(events.filter(({ kind }) => kind === "attempt_failed").map(({ payload }) => payload["message"])).toEqual(
    Array(4).fill(FAILED.message),
  );
  expect(events.findLast(({ kind }) => kind === "run_finished")?.payload).toMatchObject({
    reason: "sandbox_start_failed",
  });
});

test("a returned run whose agent was working and must not be resumed ends; in setup it is retried", async () => {
  const { worker, returnLease, now } = await team(careful);
  await returnLease(await acceptExecution(careful, worker), STOPPING);
  expect((await now()).state).toBe("QUEUED");
  await returnLease(await startExecution(careful, worker), STOPPING);
  expect(await now()).toMatchObject({ state: "ERROR", status: { errorCode: "resource_unavailable" } });
});

test("a cancelled run stays cancelled when its lease is returned, and a lease of another worker or attempt is ignored", async () => {
  const { caller, worker, run, returnLease, now } = await team();
  const execution = await startExecution(platform, worker);
  const stranger = await platform.worker({ teamUid: teamOf(caller) });
  await platform.life.worker.returnLeases(stranger.session, [{ ...execution.ref, ...STOPPING }]);
  await platform.life.worker.returnLeases(worker.session, [
    { ...execution.ref, attempt: 7, ...STOPPING },
    { executionId: 999_999_999, attempt: 1, ...STOPPING },
  ]);
  expect((await now()).state).toBe("INPROGRESS");
  await platform.life.cancelRun(caller, { runUid: run.uid, tree: false });
  await returnLease(execution, STOPPING);
  await returnLease(execution, STOPPING);
  expect((await now()).state).toBe("CANCELLED");
  expect(await platform.inUse(teamOf(caller))).toBe(0);
});
