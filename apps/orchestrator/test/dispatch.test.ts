import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { domainError } from "@millwright/testing";
import type { LeaseRef, WorkerRegistration, WorkerSession } from "../src/runs/domain/worker-session.ts";
import { ActiveExecution, startExecution } from "./support/fake-worker.ts";
import { aCaller, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform();
});
afterAll(() => platform.close());

const registration = (instanceUid = newUid() as string): WorkerRegistration => ({
  workerHost: "pod-1",
  instanceUid,
  version: "0.1.0",
  backend: "direct",
  slots: 9,
  labels: {},
  harnesses: [{ type: "oz", version: "1" }],
  models: [],
  images: [],
  sandbox: "none",
  sandboxFeatures: [],
  skills: [],
});

/** Creates a team with a worker that has dispatched one run. */
async function dispatched(request: { config?: Record<string, string> } = {}) {
  const caller = aCaller();
  const worker = await platform.worker({ teamUid: teamOf(caller) });
  const run = await platform.run(caller, request);
  const { dispatches } = await platform.life.worker.dispatch(worker.session, await platform.claim(worker));
  const { executionId, attempt, offerToken } = dispatches[0]!;
  return { caller, worker, run, offerToken, lease: { executionId, attempt }, dispatch: dispatches[0]! };
}

/** Registers a worker process that presents the token. */
async function take(offerToken: string, instanceUid?: string): Promise<WorkerSession> {
  return platform.life.worker.authenticate(await platform.life.worker.register(offerToken, registration(instanceUid)));
}

async function executionOf(offerToken: string, lease: LeaseRef): Promise<ActiveExecution> {
  const session = await take(offerToken);
  const { assignments } = await platform.life.worker.accept(session, [lease]);
  return new ActiveExecution(platform, session, assignments[0]!);
}

const watch = async (session: WorkerSession, ...watched: LeaseRef[]) => {
  const { watched: statuses } = await platform.life.worker.heartbeat(session, {
    state: "READY",
    freeSlots: 0,
    leases: [],
    watched,
  });
  return statuses.map(({ status, isStopping }) => status + (isStopping ? " stopping" : ""));
};

const GONE = domainError({ kind: "unauthenticated", reason: "offer_gone" });

test("a dispatched run is claimed, taken over with its inputs and secrets, and ends like any other", async () => {
  const { caller, worker, run, offerToken, lease, dispatch } = await dispatched();
  expect(offerToken).toMatch(new RegExp(`^mwo_${lease.executionId}_1_[\\w-]{40,}$`));
  expect(dispatch.job.run.runUid).toBe(run.uid);
  expect((await platform.getRun(caller, run.uid)).state).toBe("CLAIMED");
  expect(await watch(worker.session, lease)).toEqual(["WAITING"]);
  const execution = await executionOf(offerToken, lease);
  expect(execution.assignment).toMatchObject({
    ...lease,
    executionSeq: 1,
    isRestarted: false,
    details: { secrets: { TOKEN: "s3cret" } },
    inputs: [{ text: "Do it." }],
  });
  expect(await watch(worker.session, lease)).toEqual(["TAKEN"]);
  await execution.start();
  expect((await execution.heartbeat()).leases).toMatchObject([{ status: "OK" }]);
  await execution.complete("DONE");
  expect(await platform.getRun(caller, run.uid)).toMatchObject({ state: "SUCCEEDED" });
  expect(await watch(worker.session, lease)).toEqual(["ENDED"]);
  expect(await platform.kinds(run.uid)).toEqual([
    "run_created",
    "run_claimed",
    "sandbox_ready",
    "agent_started",
    "message",
    "run_finished",
  ]);
  expect(await platform.inUse(teamOf(caller))).toBe(0);
});

test("a token is accepted from one process, which may register again, and from no other", async () => {
  const { offerToken, lease } = await dispatched();
  const [first, second] = await Promise.allSettled([take(offerToken, "one"), take(offerToken, "two")]);
  expect([first.status, second.status].toSorted()).toEqual(["fulfilled", "rejected"]);
  const holder = first.status === "fulfilled" ? "one" : "two";
  const session = await take(offerToken, holder);
  expect((await platform.life.worker.accept(session, [lease])).assignments).toHaveLength(1);
  await expect(take(offerToken, holder === "one" ? "two" : "one")).rejects.toEqual(GONE);
});

test("a session of a token gets no other work, although it reports free slots", async () => {
  const { caller, offerToken } = await dispatched();
  await platform.run(caller);
  expect(await platform.claim({ session: await take(offerToken) }, 5)).toEqual([]);
});

test("a session of a token serves the same teams as its dispatcher: one team, or all for a worker of the platform", async () => {
  const { caller, offerToken } = await dispatched();
  expect((await take(offerToken)).teamUid).toBe(teamOf(caller));
  await platform.run(aCaller());
  const everybodys = await platform.worker();
  const { dispatches } = await platform.life.worker.dispatch(everybodys.session, await platform.claim(everybodys));
  const session = await take(dispatches[0]!.offerToken);
  expect([session.teamUid, session.workerHost]).toEqual([undefined, everybodys.session.workerHost]);
  expect((await platform.life.worker.accept(session, dispatches)).assignments).toHaveLength(1);
});

test("a token of another attempt, a truncated one, and one of an expired lease are refused", async () => {
  const { worker, lease, offerToken } = await dispatched();
  await expect(take(offerToken.replace(`_${lease.attempt}_`, "_2_"))).rejects.toEqual(GONE);
  await expect(take(offerToken.slice(0, -1))).rejects.toEqual(GONE);
  await expect(take("mwo_")).rejects.toEqual(GONE);
  await platform.expire(lease.executionId);
  await expect(take(offerToken)).rejects.toEqual(GONE);
  await platform.reaperIsAwake();
  await platform.life.reapOnce();
  expect(await watch(worker.session, lease)).toEqual(["LOST"]);
});

test("a token whose dispatcher's key was revoked is refused", async () => {
  const { worker, offerToken } = await dispatched();
  platform.keys.delete(worker.key);
  await expect(take(offerToken)).rejects.toEqual(domainError({ kind: "unauthenticated", reason: "key_invalid" }));
});

test("dispatching again returns a new token, and revokes the earlier one", async () => {
  const { worker, offerToken, lease } = await dispatched();
  const again = await platform.life.worker.dispatch(worker.session, [lease]);
  await expect(take(offerToken)).rejects.toEqual(GONE);
  expect((await take(again.dispatches[0]!.offerToken)).workerHost).toBe(worker.session.workerHost);
  // Another session owns the lease now.
  expect((await platform.life.worker.dispatch(worker.session, [lease])).lost).toEqual([lease]);
});

test("the dispatching worker renews the lease only until a process takes it over; afterwards only that process renews it", async () => {
  const { caller, worker, run, offerToken, lease } = await dispatched();
  const expiry = async () =>
    (
      await platform.database.sql.query<{ at: Date }>("SELECT expires_at AS at FROM leases WHERE execution_id = $1", [
        lease.executionId,
      ])
    ).rows[0]!.at;
  const first = await expiry();
  await watch(worker.session, lease);
  const renewed = await expiry();
  expect(renewed.getTime()).toBeGreaterThan(first.getTime());
  const execution = await (await executionOf(offerToken, lease)).start();
  const taken = await expiry();
  await watch(worker.session, lease);
  expect(await expiry()).toEqual(taken);
  await platform.expire(lease.executionId);
  await platform.reaperIsAwake();
  await platform.life.reapOnce();
  expect((await platform.getRun(caller, run.uid)).state).toBe("QUEUED");
  expect(await execution.complete("DONE")).toMatchObject({ error: "LEASE_LOST" });
});

test("waiting for a machine does not count as setup, whose time limit starts at the take-over", async () => {
  const { caller, run, offerToken, lease } = await dispatched();
  const hourLater = () =>
    platform.database.sql.query("UPDATE executions SET claimed_at = claimed_at - interval '1 hour' WHERE id = $1", [
      lease.executionId,
    ]);
  const stateAfterReaping = async () => {
    await platform.reaperIsAwake();
    await platform.life.reapOnce();
    return (await platform.getRun(caller, run.uid)).state;
  };
  await hourLater();
  expect(await stateAfterReaping()).toBe("CLAIMED");
  await take(offerToken);
  expect(await stateAfterReaping()).toBe("CLAIMED");
  await hourLater();
  expect(await stateAfterReaping()).toBe("FAILED");
});

test("hides it from other teams' workers", async () => {
  const { offerToken, lease } = await dispatched();
  const stranger = await platform.worker({ teamUid: teamOf(aCaller()) });
  const never = { executionId: 999_999_999, attempt: 1 };
  expect(await watch(stranger.session, lease, never)).toEqual(["LOST", "LOST"]);
  const execution = await (await executionOf(offerToken, lease)).start();
  await execution.complete("DONE");
  expect(await watch(stranger.session, lease, never)).toEqual(["LOST", "LOST"]);
});

test("a follow-up between dispatch and take-over reaches the agent", async () => {
  const { caller, run, offerToken, lease } = await dispatched();
  await platform.life.createFollowup(caller, {
    target: { runUid: run.uid },
    message: "and this",
    mode: "normal",
    attachmentUids: [],
  });
  const execution = await (await executionOf(offerToken, lease)).start();
  expect((await execution.heartbeat()).directives).toMatchObject([{ kind: "followup", payload: { text: "and this" } }]);
});

test("a queued run waits for a busy worker while its machines work, and for any worker when it is gone", async () => {
  const caller = aCaller();
  const gone = (which: string) =>
    platform.database.sql.query(`UPDATE worker_sessions SET last_seen_at = now() - interval '1 hour' WHERE ${which}`);
  await gone("team_uid IS NULL"); // sessions of other tests, which serve every team
  platform.keys.set("mww_busy", { keyUid: newUid(), teamUid: teamOf(caller) });
  const session = await platform.life.worker.authenticate(
    await platform.life.worker.register("mww_busy", { ...registration(), slots: 1, sandbox: "remote" }),
  );
  await platform.run(caller);
  const { dispatches } = await platform.life.worker.dispatch(session, await platform.claim({ session }));
  const execution = await (await executionOf(dispatches[0]!.offerToken, dispatches[0]!)).start();
  await watch(session, execution.ref);
  const waiting = await platform.run(caller);
  const reason = async () => (await platform.life.getQueueStatus(caller, waiting.uid)).reason;
  expect(await reason()).toBe("workers_busy");
  await gone(`uid = '${session.uid}'`);
  await execution.heartbeat();
  expect(await reason()).toBe("no_workers");
});

describe("a run that is cancelled", () => {
  test("before take-over cannot be taken over any more, and is completed by the worker that dispatched it", async () => {
    const { caller, worker, run, offerToken, lease } = await dispatched();
    await platform.life.cancelRun(caller, { runUid: run.uid, tree: false });
    expect(await watch(worker.session, lease)).toEqual(["WAITING stopping"]);
    await expect(take(offerToken)).rejects.toEqual(GONE);
    await platform.life.worker.complete(worker.session, [{ ...lease, outcome: "CANCELLED", lastClientSeq: 0 }]);
    expect(await watch(worker.session, lease)).toEqual(["ENDED stopping"]);
    expect(await platform.inUse(teamOf(caller))).toBe(0);
  });

  test("after take-over is stopped by the process that took it over", async () => {
    const { caller, worker, run, offerToken, lease } = await dispatched();
    const execution = await (await executionOf(offerToken, lease)).start();
    await platform.life.cancelRun(caller, { runUid: run.uid, tree: false });
    expect(await watch(worker.session, lease)).toEqual(["TAKEN stopping"]);
    expect((await execution.heartbeat()).leases).toMatchObject([{ status: "STOP" }]);
    await execution.complete("CANCELLED");
    expect((await platform.getRun(caller, run.uid)).state).toBe("CANCELLED");
    expect(await watch(worker.session, lease)).toEqual(["ENDED stopping"]);
  });
});

describe("a dispatch that failed", () => {
  const failure = (lease: LeaseRef) => ({ ...lease, reason: "image_pull", message: "The image x cannot be pulled." });

  test("queues the run again with the reason, three times, then ends it as an infrastructure error", async () => {
    const { caller, worker, run, lease } = await dispatched();
    let now = lease;
    for (let tries = 1; tries <= 3; tries++) {
      await platform.life.worker.failDispatch(worker.session, failure(now));
      expect((await platform.getRun(caller, run.uid)).state).toBe("QUEUED");
      const { dispatches } = await platform.life.worker.dispatch(worker.session, await platform.claim(worker));
      now = { executionId: dispatches[0]!.executionId, attempt: dispatches[0]!.attempt };
    }
    expect(now.attempt).toBe(4);
    await platform.life.worker.failDispatch(worker.session, failure(now));
    await platform.life.worker.failDispatch(worker.session, failure(now)); // repeated, as after a lost response
    expect(await platform.getRun(caller, run.uid)).toMatchObject({
      state: "ERROR",
      status: {
        message: "The run lost its workers too often and is not retried again. The image x cannot be pulled.",
        errorCode: "resource_unavailable",
        retryable: true,
      },
    });
    const events = await platform.events(run.uid);
    expect(events.filter(({ kind }) => kind === "dispatch_failed").map(({ payload }) => payload["reason"])).toEqual(
      Array(4).fill("image_pull"),
    );
    expect(events.at(-1)).toMatchObject({
      kind: "run_finished",
      payload: { reason: "image_pull", error_code: "resource_unavailable" },
    });
    expect(await platform.inUse(teamOf(caller))).toBe(0);
  });

  test("of a run that was taken over loses the attempt at once if the worker reports the take-over, and later calls of the process are refused", async () => {
    const { caller, worker, run, offerToken, lease } = await dispatched();
    const execution = await (await executionOf(offerToken, lease)).start();
    expect(await platform.life.worker.failDispatch(worker.session, failure(lease))).toEqual({ isTaken: true });
    expect((await platform.getRun(caller, run.uid)).state).toBe("INPROGRESS");
    await platform.life.worker.failDispatch(worker.session, {
      ...lease,
      reason: "evicted",
      message: "The pod was evicted.",
      isTaken: true,
    });
    expect((await platform.getRun(caller, run.uid)).state).toBe("QUEUED");
    expect(await execution.complete("DONE")).toMatchObject({ error: "LEASE_LOST" });
    expect((await platform.events(run.uid)).find(({ kind }) => kind === "worker_lost")?.payload).toMatchObject({
      reason: "evicted",
      message: "The pod was evicted.",
    });
  });

  test("of a run whose machine was killed for its memory fails the run, and no other attempt is made", async () => {
    const { caller, worker, run, offerToken, lease } = await dispatched();
    await (await executionOf(offerToken, lease)).start();
    const failed = { reason: "container_oom", message: "The pod exceeded its memory limit and was killed." };
    await platform.life.worker.failDispatch(worker.session, { ...lease, ...failed, isTaken: true });
    expect(await platform.getRun(caller, run.uid)).toMatchObject({
      state: "FAILED",
      status: { message: failed.message, errorCode: "container_oom", retryable: false },
    });
    expect((await platform.events(run.uid)).slice(-2)).toMatchObject([
      { kind: "worker_lost", payload: failed },
      { kind: "run_finished", payload: { state: "FAILED", reason: "container_oom" } },
    ]);
    expect(await platform.inUse(teamOf(caller))).toBe(0);
  });

  test("changes nothing if another worker reports it, or the attempt has ended or was not dispatched", async () => {
    const { caller, worker, run, offerToken, lease } = await dispatched();
    const stranger = await platform.worker({ teamUid: teamOf(caller) });
    const execution = await (await executionOf(offerToken, lease)).start();
    await platform.life.worker.failDispatch(stranger.session, { ...failure(lease), isTaken: true });
    await platform.life.worker.failDispatch(execution.session, { ...failure(lease), isTaken: true });
    await execution.complete("DONE");
    await platform.life.worker.failDispatch(worker.session, failure(lease));
    expect((await platform.getRun(caller, run.uid)).state).toBe("SUCCEEDED");
    await platform.run(caller);
    const own = await startExecution(platform, stranger);
    await platform.life.worker.failDispatch(stranger.session, failure(own.ref));
    expect((await own.heartbeat()).leases).toMatchObject([{ status: "OK" }]);
  });
});
