import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { domainError, eventually } from "@millwright/testing";
import { acceptExecution, startExecution } from "../support/fake-worker.ts";
import { aCaller, teamOf, testPlatform, type TestPlatform } from "../support/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform();
});
afterAll(() => platform.close());

async function team() {
  const caller = aCaller();
  return { caller, worker: await platform.worker({ teamUid: teamOf(caller), slots: 9 }) };
}

const cancel = (caller: ReturnType<typeof aCaller>, runUid: string, tree = false) =>
  platform.life.cancelRun(caller, { runUid, tree });

test("Cancel while QUEUED: the run is CANCELLED at once, and no worker is notified", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  expect(await cancel(caller, run.uid)).toMatchObject({ state: "CANCELLED", status: { message: "Cancelled." } });
  expect(await platform.claim(worker)).toEqual([]);
  await expect(cancel(caller, run.uid)).rejects.toEqual(
    domainError({ kind: "invalid_argument", reason: "run_already_finished" }),
  );
});

test("a cancel that is repeated with its key returns the first result; for another run the key is a conflict", async () => {
  const { caller } = await team();
  const [run, otherRun] = [await platform.run(caller), await platform.run(caller)];
  const keyed = (runUid: string) => platform.life.cancelRun(caller, { runUid, tree: false, idempotencyKey: "k" });
  expect([(await keyed(run.uid)).state, (await keyed(run.uid)).state]).toEqual(["CANCELLED", "CANCELLED"]);
  expect((await platform.kinds(run.uid)).filter((kind) => kind === "run_finished")).toHaveLength(1);
  await expect(keyed(otherRun.uid)).rejects.toEqual(domainError({ kind: "conflict", reason: "idempotency_mismatch" }));
  expect((await platform.getRun(caller, otherRun.uid)).state).toBe("QUEUED");
});

test("Cancel while PENDING: refused with the time of the next try; the offer remains", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  await platform.claim(worker);
  await expect(cancel(caller, run.uid)).rejects.toEqual(
    domainError({ kind: "conflict", reason: "run_pending", retryable: true }),
  );
  await expect(cancel(caller, run.uid, true)).rejects.toEqual(domainError({ reason: "run_pending" }));
  expect((await platform.getRun(caller, run.uid)).state).toBe("PENDING");
});

test("Cancel of a run whose offer has expired and is not reaped yet: CANCELLED at once, and the offer can no longer be accepted", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  const offers = await platform.claim(worker);
  await platform.expire(offers[0]!.executionId);
  expect((await cancel(caller, run.uid)).state).toBe("CANCELLED");
  expect(await platform.life.worker.accept(worker.session, offers)).toMatchObject({
    assignments: [],
    lost: offers.map(({ executionId }) => ({ executionId })),
  });
});

test("a run that its client executes cannot be cancelled unless it has ended", async () => {
  const { caller } = await team();
  const run = await platform.run(caller);
  await platform.database.sql.query("UPDATE runs SET execution_location = 'LOCAL' WHERE uid = $1", [run.uid]);
  await expect(cancel(caller, run.uid)).rejects.toEqual(
    domainError({ kind: "unsupported", reason: "run_not_cancellable" }),
  );
  await platform.database.sql.query("UPDATE runs SET state = 'SUCCEEDED' WHERE uid = $1", [run.uid]);
  await expect(cancel(caller, run.uid)).rejects.toEqual(domainError({ reason: "run_already_finished" }));
});

test("Cancel while running: CANCELLED at once; the worker is instructed to stop, the run token is revoked, and last events are accepted", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  const execution = await startExecution(platform, worker);
  expect((await cancel(caller, run.uid)).state).toBe("CANCELLED");
  await expect(platform.life.checkLease(execution.ref)).rejects.toEqual(domainError({ reason: "lease_lost" }));
  const { leases, directives } = await execution.heartbeat();
  expect(leases[0]).toMatchObject({ status: "STOP" });
  expect(leases[0]!.runToken).toBeUndefined();
  expect(directives).toMatchObject([{ kind: "cancel", seq: 1, attempt: 1 }]);
  expect((await execution.heartbeat(1)).directives).toEqual([]);
  expect(await execution.append(execution.event("sandbox_stopped", { reason: "cancelled" }))).toMatchObject({
    error: "",
  });
  expect(await platform.inUse(teamOf(caller))).toBe(1);
  expect(await execution.complete("CANCELLED")).toMatchObject({ error: "" });
  expect(await platform.inUse(teamOf(caller))).toBe(0);
  expect((await platform.kinds(run.uid)).slice(-2)).toEqual(["run_finished", "sandbox_stopped"]);
  expect(await execution.append(execution.event("warning", { text: "too late" }))).toMatchObject({
    error: "LEASE_LOST",
  });
  expect((await platform.facts(run.uid)).filter(({ type }) => type.includes("finished"))).toHaveLength(1);
});

test("Cancel while running, worker silent: fenced off when the grace period ends", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  const execution = await startExecution(platform, worker);
  await cancel(caller, run.uid);
  await platform.database.sql.query("UPDATE leases SET fence_at = clock_timestamp() WHERE execution_id = $1", [
    execution.ref.executionId,
  ]);
  await platform.reaperIsAwake();
  await platform.life.reapOnce();
  expect(await execution.append(execution.event("warning", { text: "too late" }))).toMatchObject({
    error: "LEASE_LOST",
  });
  expect(await platform.inUse(teamOf(caller))).toBe(0);
  expect((await platform.getRun(caller, run.uid)).state).toBe("CANCELLED");
});

test("Cancel races completion: the first to commit wins, and the other is refused", async () => {
  const { caller, worker } = await team();
  for (let n = 0; n < 10; n++) {
    const run = await platform.run(caller);
    const execution = await startExecution(platform, worker);
    const [cancelled, completed] = await Promise.allSettled([cancel(caller, run.uid), execution.complete("DONE")]);
    const { state } = await platform.getRun(caller, run.uid);
    const results = [
      completed.status === "fulfilled" && completed.value.error,
      cancelled.status === "rejected" && (cancelled.reason as { reason: string }).reason,
    ];
    expect({ state, results }).toEqual(
      state === "CANCELLED"
        ? { state, results: ["ALREADY_TERMINAL", false] }
        : { state: "SUCCEEDED", results: ["", "run_already_finished"] },
    );
    expect((await platform.kinds(run.uid)).filter((kind) => kind === "run_finished")).toHaveLength(1);
  }
  expect(await platform.inUse(teamOf(caller))).toBe(0);
});

test("Cancel of a tree ends its runs in every state, PENDING ones too; a plain cancel does not affect children", async () => {
  const { caller, worker } = await team();
  const root = await platform.run(caller);
  const waiting = await platform.run(caller, { parentRunUid: root.uid });
  const running = await platform.run(caller, { parentRunUid: waiting.uid });
  const claimed = await platform.run(caller, { parentRunUid: running.uid });
  const holding = new Map<string, Awaited<ReturnType<typeof acceptExecution>>>();
  for (let n = 0; n < 4; n++) {
    const execution = await acceptExecution(platform, worker);
    holding.set(execution.assignment.job.run.runUid, execution);
  }
  await holding.get(running.uid)!.start();
  await holding.get(waiting.uid)!.start();
  expect(
    await holding.get(waiting.uid)!.complete("WAITING", { waitFor: { policy: "all", runUids: [] } }),
  ).toMatchObject({ error: "" });
  const pending = await platform.run(caller, { parentRunUid: claimed.uid });
  const offers = await platform.claim(worker);
  const queued = await platform.run(caller, { parentRunUid: pending.uid });
  const states = async () =>
    Promise.all(
      [root, waiting, running, claimed, pending, queued].map(
        async ({ uid }) => (await platform.getRun(caller, uid)).state,
      ),
    );
  expect(await states()).toEqual(["CLAIMED", "INPROGRESS", "INPROGRESS", "CLAIMED", "PENDING", "QUEUED"]);

  await cancel(caller, waiting.uid);
  expect(await states()).toEqual(["CLAIMED", "CANCELLED", "INPROGRESS", "CLAIMED", "PENDING", "QUEUED"]);
  await cancel(caller, root.uid, true);
  expect(new Set(await states())).toEqual(new Set(["CANCELLED"]));
  expect((await platform.life.worker.accept(worker.session, offers)).lost).toHaveLength(1);
  expect(await platform.claim(worker, 9)).toEqual([]);
  expect(await platform.inUse(teamOf(caller))).toBe(3); // three executions are still stopping
});

test("Child created while its tree is cancelled: it is cancelled with the tree, or refused", async () => {
  const { caller } = await team();
  for (let n = 0; n < 5; n++) {
    const root = await platform.run(caller);
    const spawned = Array.from({ length: 6 }, () =>
      platform.run(caller, { parentRunUid: root.uid }).then(
        ({ uid }) => uid,
        ({ reason }) => String(reason),
      ),
    );
    await cancel(caller, root.uid, true);
    const children = (await Promise.all(spawned)).filter((child) => child !== "parent_run_invalid");
    const states = await Promise.all(children.map(async (child) => (await platform.getRun(caller, child)).state));
    expect(states).toEqual(children.map(() => "CANCELLED"));
  }
});

test("cancelling a tree locks the leases in the order of a heartbeat, so that they do not deadlock", async () => {
  const { caller, worker } = await team();
  const root = await platform.run(caller);
  const first = await startExecution(platform, worker);
  for (let n = 0; n < 2; n++) await platform.run(caller, { parentRunUid: root.uid });
  const [quick, slow] = [await startExecution(platform, worker), await startExecution(platform, worker)];
  await first.complete("WAITING", { waitFor: { policy: "any", runUids: [] } });
  await quick.complete("DONE");
  const again = await startExecution(platform, worker); // the newer execution of the root
  const { database } = platform;
  let cancelling: Promise<unknown> = Promise.resolve();
  await database.transaction(async (heartbeat) => {
    await heartbeat.query("SELECT 1 FROM leases WHERE execution_id = $1 FOR UPDATE", [slow.ref.executionId]);
    cancelling = cancel(caller, root.uid, true);
    await eventually(async () => {
      const { rowCount } = await database.sql.query(
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
      );
      expect(rowCount).toBe(1);
    });
    await heartbeat.query("SELECT 1 FROM leases WHERE execution_id = $1 FOR UPDATE NOWAIT", [again.ref.executionId]);
  });
  expect(await cancelling).toMatchObject({ state: "CANCELLED" });
});
