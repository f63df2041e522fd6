import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { domainError } from "@millwright/testing";
import { followupsOf } from "../src/runs/store/followup-store.ts";
import { acceptExecution, startExecution, type ActiveExecution } from "./support/fake-worker.ts";
import { aCaller, aRun, resolvedFor, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

const MINUTES = 30;
const ERROR = {
  code: "environment_setup_failed",
  message: "npm ci failed.",
  retryable: false,
  reason: "setup_command_failed",
};

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    resolveRun: async (_caller, request) => {
      const resolved = resolvedFor(request);
      return {
        ...resolved,
        frozen: {
          ...resolved.frozen,
          failure_session_retention_minutes: request.config["retained"] === false ? undefined : MINUTES,
        },
      };
    },
  });
});
afterAll(() => platform.close());

/** Returns the texts of a run's follow-ups with their delivery states. */
const fatesOf = async (runUid: string) =>
  (await followupsOf(platform.database.sql, runUid, 0, 10)).followups.map(({ text, deliveredAt, undeliverable }) => [
    text,
    deliveredAt ? "delivered" : (undeliverable ?? "queued"),
  ]);

/** Creates a run whose setup has failed and is retained by its worker for debugging. */
async function aRetainedSetup() {
  const caller = aCaller();
  const worker = await platform.worker({ teamUid: teamOf(caller) });
  const run = await platform.run(caller);
  const follow = async (message: string) =>
    platform.life.createFollowup(caller, { target: { runUid: run.uid }, message, mode: "normal", attachmentUids: [] });
  const execution = await acceptExecution(platform, worker);
  expect(await execution.complete("FAILED", { error: ERROR, isRetained: true })).toMatchObject({ error: "" });
  const now = () => platform.getRun(caller, run.uid);
  const fates = () => fatesOf(run.uid);
  const reap = async () => {
    await platform.reaperIsAwake();
    await platform.life.reapOnce();
  };
  return {
    caller,
    worker,
    run,
    follow,
    execution,
    now,
    fates,
    reap,
    events: async () => (await platform.events(run.uid)).map(({ kind, payload }) => [kind, payload]),
  };
}

const FAILED = { state: "FAILED", status: { message: ERROR.message, errorCode: ERROR.code, retryable: false } };

test("a retained failed setup ends its run, still uses its worker and capacity, and reports how long the window is open", async () => {
  const { caller, execution, now, events } = await aRetainedSetup();
  const run = await now();
  expect(run).toMatchObject({ ...FAILED, debugWindow: { isActive: false } });
  const leftMs = run.debugWindow!.until.getTime() - run.finishedAt!.getTime();
  expect(Math.abs(leftMs - MINUTES * 60_000)).toBeLessThan(60_000);
  expect(await platform.inUse(teamOf(caller))).toBe(1);
  expect((await events()).slice(-2)).toMatchObject([
    ["run_finished", { state: "FAILED", reason: ERROR.reason }],
    ["debug_window_opened", { window_ms: MINUTES * 60_000 }],
  ]);
  expect((await execution.heartbeat()).leases).toMatchObject([{ status: "OK" }]);
  // The response was lost, so the worker repeats the call.
  expect(await execution.complete("FAILED", { error: ERROR, isRetained: true })).toMatchObject({ error: "" });
  expect((await now()).debugWindow).toBeDefined();
  expect((await events()).filter(([kind]) => kind === "debug_window_opened")).toHaveLength(1);
});

test("a follow-up in the window goes to the retained session, and leaves state, message and error code unchanged", async () => {
  const { follow, execution, now, fates, run } = await aRetainedSetup();
  const before = await now();
  expect(await follow("Look.")).toMatchObject({ outcome: "live_session", runUid: run.uid });
  const { directives } = await execution.heartbeat();
  expect(directives).toMatchObject([{ kind: "followup", payload: { text: "Look." } }]);
  expect(
    await execution.append(
      execution.event("message", { role: "user", text: "Look.", message_uid: directives[0]!.payload["message_uid"]! }),
      execution.event("model_step", { step_id: "s", text: "I see." }),
    ),
  ).toMatchObject({ error: "" });
  await platform.life.worker.heartbeat(execution.session, {
    state: "READY",
    freeSlots: 0,
    leases: [{ ...execution.ref, phase: "RUNNING", ackedDirectiveSeq: 1 }],
  });
  const { debugWindow, ...after } = await now();
  expect([await fates(), debugWindow!.isActive]).toEqual([[["Look.", "delivered"]], true]);
  expect(after).toMatchObject({
    ...FAILED,
    finishedAt: before.finishedAt,
    runTimeMs: before.runTimeMs,
    version: before.version,
  });
});

test("the window delivers a follow-up that was sent during the setup, and none from before the start", async () => {
  const caller = aCaller();
  const worker = await platform.worker({ teamUid: teamOf(caller) });
  const run = await platform.run(caller);
  const follow = (message: string) =>
    platform.life.createFollowup(caller, { target: { runUid: run.uid }, message, mode: "normal", attachmentUids: [] });
  await follow("Before.");
  const execution = await acceptExecution(platform, worker);
  await follow("During setup.");
  await execution.complete("FAILED", { error: ERROR, isRetained: true });
  expect(await fatesOf(run.uid)).toEqual([
    ["Before.", "run_failed"],
    ["During setup.", "queued"],
  ]);
  expect((await execution.heartbeat()).directives).toMatchObject([{ payload: { text: "During setup." } }]);
});

test("when the window ends, undelivered follow-ups are undeliverable, everything is released, and the next follow-up starts a new execution", async () => {
  const { caller, worker, follow, execution, now, fates, events } = await aRetainedSetup();
  await follow("Too late.");
  const { runTimeMs } = await now();
  expect(await execution.complete("FAILED", { error: ERROR })).toMatchObject({ error: "" });
  const run = await now();
  expect(run).toMatchObject({ ...FAILED, runTimeMs, isSandboxRunning: false });
  expect(run.debugWindow).toBeUndefined();
  expect([await fates(), await platform.inUse(teamOf(caller))]).toEqual([[["Too late.", "debug_window_ended"]], 0]);
  expect((await events()).slice(-2)).toMatchObject([
    ["debug_window_ended", { reason: "window_expired" }],
    ["followup_undelivered", { reason: "debug_window_ended" }],
  ]);
  await expect(platform.life.checkLease(execution.ref)).rejects.toEqual(domainError({ reason: "lease_lost" }));
  expect(await execution.complete("FAILED", { error: ERROR, isRetained: true })).toMatchObject({ error: "" });
  expect(await follow("Again.")).toMatchObject({ outcome: "handoff_execution" });
  expect((await startExecution(platform, worker)).assignment.inputs.map(({ text }) => text)).toEqual([
    "Do it.",
    "Again.",
  ]);
});

test("when the worker is lost, its window ends, and the run is otherwise unchanged", async () => {
  const { caller, follow, execution, now, fates, reap, events } = await aRetainedSetup();
  await follow("Anybody?");
  await platform.expire(execution.ref.executionId);
  expect((await now()).debugWindow).toBeUndefined(); // immediately: the lease of its worker has expired
  await reap();
  expect(await now()).toMatchObject(FAILED);
  expect([await fates(), await platform.inUse(teamOf(caller))]).toEqual([[["Anybody?", "debug_session_lost"]], 0]);
  expect((await events()).slice(-2)).toMatchObject([
    ["debug_window_ended", { reason: "worker_lost" }],
    ["followup_undelivered", {}],
  ]);
  expect(await execution.append(execution.event("warning", { text: "late" }))).toMatchObject({ error: "LEASE_LOST" });
});

test.each([
  ["its worker is lost", "worker_lost", (execution: ActiveExecution) => platform.expire(execution.ref.executionId)],
  [
    "the window has expired",
    "window_expired",
    (execution: ActiveExecution) =>
      platform.database.sql.query("UPDATE executions SET debug_until = clock_timestamp() WHERE id = $1", [
        execution.ref.executionId,
      ]),
  ],
])("once %s, a follow-up starts a new execution, also before the reaper notices", async (_how, reason, end) => {
  const { caller, follow, execution, now, fates, events } = await aRetainedSetup();
  await follow("Anybody?");
  await end(execution);
  expect(await follow("Go on.")).toMatchObject({ outcome: "handoff_execution" });
  expect(await now()).toMatchObject({ state: "QUEUED" });
  expect((await fates())[1]).toEqual(["Go on.", "queued"]);
  expect(await events()).toContainEqual(["debug_window_ended", { reason }]);
  expect((await execution.heartbeat()).leases).toMatchObject([{ status: "LOST" }]);
  const next = await startExecution(platform, await platform.worker({ teamUid: teamOf(caller) }));
  expect(next.assignment.inputs.map(({ text }) => text)).toEqual(["Do it.", "Go on."]);
});

test("a worker that retains it for longer than twice the window is fenced off", async () => {
  const { execution, now, reap, events } = await aRetainedSetup();
  const openFor = (minutes: number) =>
    platform.database.sql.query(
      "UPDATE executions SET debug_since = clock_timestamp() - $2 * interval '1 minute', debug_until = clock_timestamp() - ($2 - $3) * interval '1 minute' WHERE id = $1",
      [execution.ref.executionId, minutes, MINUTES],
    );
  await openFor(2 * MINUTES - 1);
  await reap();
  expect((await execution.heartbeat()).leases).toMatchObject([{ status: "OK" }]);
  expect((await now()).debugWindow).toBeUndefined(); // over, except for a turn that may still be running
  await openFor(2 * MINUTES + 2);
  await reap();
  expect((await execution.heartbeat()).leases).toMatchObject([{ status: "LOST" }]);
  expect((await events()).at(-1)).toMatchObject(["debug_window_ended", { reason: "window_expired" }]);
});

test("retains nothing if the environment does not request it, the agent had started, or the run was cancelled", async () => {
  const caller = aCaller();
  const worker = await platform.worker({ teamUid: teamOf(caller) });
  const end = async (
    config: Record<string, boolean>,
    before: (execution: ActiveExecution, uid: string) => Promise<unknown>,
  ) => {
    const [created] = await platform.life.createRuns(caller, [aRun(caller, { config })]);
    const execution = await acceptExecution(platform, worker);
    await before(execution, created!.run.uid);
    await execution.complete("FAILED", { error: ERROR, isRetained: true });
    expect((await execution.heartbeat()).leases).toMatchObject([{ status: "LOST" }]);
    return [(await platform.getRun(caller, created!.run.uid)).state, await platform.inUse(teamOf(caller))];
  };
  expect(await end({ retained: false }, async () => {})).toEqual(["FAILED", 0]);
  expect(await end({}, (execution) => execution.start())).toEqual(["FAILED", 0]);
  expect(await end({}, (_execution, runUid) => platform.life.cancelRun(caller, { runUid, tree: false }))).toEqual([
    "CANCELLED",
    0,
  ]);
});

test("a window is no active run: it cannot be cancelled or interrupted, but it ends with its tree", async () => {
  const caller = aCaller();
  const worker = await platform.worker({ teamUid: teamOf(caller) });
  const root = await platform.run(caller);
  await startExecution(platform, worker);
  const child = await platform.run(caller, { parentRunUid: root.uid });
  const execution = await acceptExecution(platform, worker);
  await execution.complete("FAILED", { error: ERROR, isRetained: true });
  const finished = domainError({ reason: "run_already_finished" });
  await expect(platform.life.cancelRun(caller, { runUid: child.uid, tree: false })).rejects.toEqual(finished);
  await expect(platform.life.interruptRun(caller, { runUid: child.uid })).rejects.toEqual(finished);
  await platform.life.cancelRun(caller, { runUid: root.uid, tree: true });
  await expect(platform.life.checkLease(execution.ref)).rejects.toEqual(domainError({ reason: "lease_lost" }));
  expect((await execution.heartbeat()).leases).toMatchObject([{ status: "LOST" }]);
  expect(await platform.getRun(caller, child.uid)).toMatchObject(FAILED);
  expect((await platform.events(child.uid)).at(-1)).toMatchObject({
    kind: "debug_window_ended",
    payload: { reason: "cancelled" },
  });
});
