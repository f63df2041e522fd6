import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { EVENTS_PER_RUN_MAX } from "../src/runs/domain/run-events.ts";
import { ActiveExecution, acceptExecution, startExecution } from "./support/fake-worker.ts";
import { aCaller, aRun, resolvedFor, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

const GIB = 1024 ** 3;
const ERROR = { code: "environment_setup_failed", message: "No.", retryable: false, reason: "setup_failed" };
const STOPPING = { reason: "worker_stopping", message: "The worker is stopping.", isFailure: false };
const BROKEN = { reason: "sandbox_start_failed", message: "The sandbox did not start.", isFailure: true };

let p: TestPlatform;
beforeAll(async () => {
  p = await testPlatform({
    resolveRun: async (_caller, request) => {
      const resolved = resolvedFor(request);
      const frozen = request.config["frozen"] as object | undefined;
      return { ...resolved, frozen: { ...resolved.frozen, failure_session_retention_minutes: 30, ...frozen } };
    },
  });
});
afterAll(() => p.close());

const frozen = (more: object) => ({ config: { frozen: more } });
const rowsOf = async (text: string, ...params: unknown[]) => (await p.database.sql.query<any>(text, params)).rows;

/** Returns the intervals of a run: execution and attempt, times, shape. */
const intervalsOf = (runUid: string) =>
  rowsOf(
    `SELECT x.seq || '/' || c.attempt AS which, c.started_at, c.ended_at, c.vcpus, c.memory_gb
       FROM compute_intervals c JOIN executions x ON x.id = c.execution_id AND x.run_uid = c.run_uid
      WHERE c.run_uid = $1 ORDER BY x.seq, c.attempt`,
    runUid,
  );
const attemptsOf = async (runUid: string) => (await intervalsOf(runUid)).map(({ which }) => which);

async function aTeam(request = {}) {
  const caller = aCaller();
  const worker = await p.worker({ teamUid: teamOf(caller) });
  const run = await p.run(caller, request);
  const cancel = () => p.life.cancelRun(caller, { runUid: run.uid, tree: false });
  return { caller, worker, run, cancel, state: async () => (await p.getRun(caller, run.uid)).state };
}

/** Moves the claim of an attempt `seconds` into the past. Returns the time of the claim. */
async function claimedAgo({ ref }: Pick<ActiveExecution, "ref">, seconds: number): Promise<Date> {
  const text =
    "UPDATE executions SET claimed_at = claimed_at - $2 * interval '1 second' WHERE id = $1 RETURNING claimed_at";
  return (await rowsOf(text, ref.executionId, seconds))[0].claimed_at;
}

async function reap(): Promise<void> {
  await p.reaperIsAwake();
  await p.life.reapOnce();
}

async function expire(execution: Pick<ActiveExecution, "ref">): Promise<void> {
  await rowsOf("UPDATE leases SET expires_at = clock_timestamp() WHERE execution_id = $1", execution.ref.executionId);
  await reap();
}

const returnLease = ({ session, ref }: ActiveExecution, how: typeof STOPPING) =>
  p.life.worker.returnLeases(session, [{ ...ref, ...how }]);
const expireGrace = ({ ref }: ActiveExecution) =>
  rowsOf("UPDATE leases SET fence_at = clock_timestamp() WHERE execution_id = $1", ref.executionId);
type Team = Awaited<ReturnType<typeof aTeam>>;

describe("an attempt has one interval, from its claim to its end", () => {
  const completed =
    (outcome: Parameters<ActiveExecution["complete"]>[0], more = {}) =>
    (execution: ActiveExecution) =>
      execution.complete(outcome, more);
  test.each<[string, "setup" | "running", string, (execution: ActiveExecution, team: Team) => Promise<unknown>]>([
    ["when it is done", "running", "SUCCEEDED", completed("DONE")],
    ["when it fails", "running", "FAILED", completed("FAILED", { error: ERROR })],
    ["when its setup fails", "setup", "FAILED", completed("FAILED", { error: ERROR })],
    ["when it is blocked", "running", "BLOCKED", completed("BLOCKED", { message: "Which?" })],
    ["when the platform fails", "running", "ERROR", completed("ERROR", { error: ERROR })],
    ["when its worker abandons the run", "running", "CANCELLED", completed("CANCELLED")],
    [
      "when its run is cancelled and the worker stops",
      "running",
      "CANCELLED",
      async (execution, { cancel }) => {
        await cancel();
        await execution.complete("CANCELLED");
      },
    ],
    [
      "when its run is cancelled in the setup",
      "setup",
      "CANCELLED",
      async (execution, { cancel }) => {
        await cancel();
        await execution.complete("CANCELLED");
      },
    ],
    [
      "when its run is cancelled and the grace ends",
      "running",
      "CANCELLED",
      async (execution, { cancel }) => {
        await cancel();
        await expireGrace(execution);
        await reap();
      },
    ],
    [
      "when its run is cancelled and the worker returns the lease",
      "running",
      "CANCELLED",
      async (execution, { cancel }) => {
        await cancel();
        await returnLease(execution, STOPPING);
      },
    ],
    ["when its worker is lost in the setup", "setup", "QUEUED", (execution) => expire(execution)],
    ["when its worker is lost", "running", "QUEUED", (execution) => expire(execution)],
    ["when its worker drains in the setup", "setup", "QUEUED", (execution) => returnLease(execution, STOPPING)],
    ["when its worker drains", "running", "QUEUED", (execution) => returnLease(execution, STOPPING)],
    ["when its worker cannot execute it", "setup", "QUEUED", (execution) => returnLease(execution, BROKEN)],
    [
      "when it writes too many events and stops",
      "running",
      "FAILED",
      async (execution, { run }) => {
        await rowsOf("UPDATE run_streams SET last_seq = $2 WHERE run_uid = $1", run.uid, EVENTS_PER_RUN_MAX);
        await execution.append(execution.event("warning", { text: "One too many." }));
        await execution.complete("CANCELLED");
      },
    ],
    [
      "when its debug window ends",
      "setup",
      "FAILED",
      async (execution) => {
        await execution.complete("FAILED", { error: ERROR, isRetained: true });
        await execution.complete("FAILED", { message: "window_expired" });
      },
    ],
    [
      "when its worker is lost in the debug window",
      "setup",
      "FAILED",
      async (execution) => {
        await execution.complete("FAILED", { error: ERROR, isRetained: true });
        await expire(execution);
      },
    ],
  ])("%s (%s)", async (_when, phase, state, end) => {
    const team = await aTeam();
    const execution = await (phase === "setup" ? acceptExecution : startExecution)(p, team.worker);
    const claimedAt = await claimedAgo(execution, 90);
    expect(await attemptsOf(team.run.uid)).toEqual([]);
    await end(execution, team);
    expect(await team.state()).toBe(state);
    const [interval, ...more] = await intervalsOf(team.run.uid);
    expect([interval.which, interval.started_at, more]).toEqual(["1/1", claimedAt, []]);
    expect(interval.ended_at.getTime() - claimedAt.getTime()).toBeGreaterThanOrEqual(90_000);
    expect(interval.ended_at.getTime() - claimedAt.getTime()).toBeLessThan(600_000);
    await execution.complete("DONE"); // too late, or repeated
    expect(await attemptsOf(team.run.uid)).toEqual(["1/1"]);
  });

  test("when it exceeds the time limit of an execution and stops", async () => {
    const { worker, run, state } = await aTeam();
    const execution = await startExecution(p, worker);
    const claimedAt = await claimedAgo(execution, (p.timings.executionTimeoutMs + p.timings.leaseTtlMs) / 1_000 + 60);
    await reap();
    expect([await state(), await attemptsOf(run.uid)]).toEqual(["ERROR", []]);
    await execution.complete("CANCELLED");
    expect(await intervalsOf(run.uid)).toMatchObject([{ which: "1/1", started_at: claimedAt }]);
  });

  test("when its worker is lost and the agent must not be resumed", async () => {
    const { worker, run, state } = await aTeam(frozen({ on_worker_loss: "fail" }));
    await expire(await startExecution(p, worker));
    expect([await state(), await attemptsOf(run.uid)]).toEqual(["ERROR", ["1/1"]]);
  });

  test("including a debug window, during which the sandbox is in use", async () => {
    const { worker, run } = await aTeam();
    const execution = await acceptExecution(p, worker);
    await execution.complete("FAILED", { error: ERROR, isRetained: true });
    expect(await attemptsOf(run.uid)).toEqual([]);
    await claimedAgo(execution, 600);
    await execution.complete("FAILED", { message: "window_expired" });
    const [{ started_at, ended_at }] = await intervalsOf(run.uid);
    expect(ended_at.getTime() - started_at.getTime()).toBeGreaterThanOrEqual(600_000);
  });
});

describe("each attempt has its own interval", () => {
  test("of one execution: a lost attempt, a returned one and the completed one", async () => {
    const { worker, run } = await aTeam();
    await expire(await acceptExecution(p, worker));
    await returnLease(await startExecution(p, worker), STOPPING);
    await (await startExecution(p, worker)).complete("DONE");
    const intervals = await intervalsOf(run.uid);
    expect(intervals.map(({ which }) => which)).toEqual(["1/1", "1/2", "1/3"]);
    const times = intervals.flatMap(({ started_at, ended_at }) => [started_at.getTime(), ended_at.getTime()]);
    expect(times).toEqual(times.toSorted((a, b) => a - b)); // each ends before the next one starts
  });

  test("until workers were lost too often", async () => {
    const { worker, run, state } = await aTeam();
    const attempts: string[] = [];
    while ((await state()) === "QUEUED") {
      const execution = await acceptExecution(p, worker);
      attempts.push(`1/${execution.ref.attempt}`);
      await expire(execution);
    }
    expect([await state(), attempts.length > 2]).toEqual(["ERROR", true]);
    expect(await attemptsOf(run.uid)).toEqual(attempts);
  });

  test("of several executions of a run that a follow-up continues, and of a wait for children", async () => {
    const { caller, worker, run } = await aTeam();
    const parent = await startExecution(p, worker);
    const child = await p.run(caller, { parentRunUid: run.uid });
    await parent.complete("WAITING", { waitFor: { policy: "all", runUids: [child.uid] } });
    expect(await attemptsOf(run.uid)).toEqual(["1/1"]);
    await (await startExecution(p, worker)).complete("DONE");
    await (await startExecution(p, worker)).complete("DONE");
    await p.life.createFollowup(caller, {
      target: { runUid: run.uid },
      message: "And now?",
      mode: "normal",
      attachmentUids: [],
    });
    await (await startExecution(p, worker)).complete("DONE");
    expect(await attemptsOf(run.uid)).toEqual(["1/1", "2/1", "3/1"]);
    expect(await attemptsOf(child.uid)).toEqual(["1/1"]);
  });

  test("of all runs of a cancelled tree, except those that no worker accepted", async () => {
    const { caller, worker, run } = await aTeam();
    const parent = await startExecution(p, worker);
    const child = await p.run(caller, { parentRunUid: run.uid });
    const queued = await p.run(caller, { parentRunUid: run.uid });
    const execution = await startExecution(p, worker);
    await p.life.cancelRun(caller, { runUid: run.uid, tree: true });
    await parent.complete("CANCELLED");
    await execution.complete("CANCELLED");
    const worked = execution.assignment.job.run.runUid;
    expect([child.uid, queued.uid]).toContain(worked);
    expect(await attemptsOf(run.uid)).toEqual(["1/1"]);
    expect((await Promise.all([child.uid, queued.uid].map(attemptsOf))).flat()).toEqual(["1/1"]);
  });
});

describe("no interval is recorded", () => {
  test("for an offer that is declined, expires, or is withdrawn with its tree", async () => {
    const { caller, worker, run } = await aTeam();
    const parent = await startExecution(p, worker);
    const child = await p.run(caller, { parentRunUid: run.uid });
    await p.life.worker.decline(worker.session, await p.claim(worker));
    await expire({ ref: (await p.claim(worker))[0]! });
    await expect(p.claim(worker)).resolves.toMatchObject([{ attempt: 3 }]);
    await p.life.cancelRun(caller, { runUid: run.uid, tree: true });
    await parent.complete("CANCELLED");
    expect((await p.getRun(caller, child.uid)).state).toBe("CANCELLED");
    expect([await attemptsOf(child.uid), await attemptsOf(run.uid)]).toEqual([[], ["1/1"]]);
  });

  test("for a run that its client executes", async () => {
    const { caller } = await aTeam();
    const local = { clientUid: newUid(), command: ["npm", "test"] };
    const { run } = await p.life.createLocalRun(caller, { ...aRun(caller, { source: "LOCAL" }), local });
    const end = { exitCode: 0, isInterrupted: false, output: "", isTruncated: false };
    const { run: ended } = await p.life.reportLocalRun(caller, {
      runUid: run.uid,
      clientUid: local.clientUid,
      events: [{ seq: 1, at: new Date(), kind: "end", end }],
    });
    expect([ended.state, await attemptsOf(run.uid)]).toEqual(["SUCCEEDED", []]);
  });
});

describe("the interval of an attempt that another machine executes", () => {
  const registration = {
    workerHost: "pod",
    version: "0.1.0",
    backend: "direct",
    slots: 9,
    labels: {},
    models: [],
    images: [],
    sandbox: "none",
    sandboxFeatures: [],
    skills: [],
  };

  async function dispatched() {
    const team = await aTeam();
    const { dispatches } = await p.life.worker.dispatch(team.worker.session, await p.claim(team.worker));
    const { executionId, attempt, offerToken } = dispatches[0]!;
    const take = async () => {
      const token = await p.life.worker.register(offerToken, {
        ...registration,
        instanceUid: newUid(),
        harnesses: [{ type: "oz", version: "1" }],
      });
      const session = await p.life.worker.authenticate(token);
      const { assignments } = await p.life.worker.accept(session, [{ executionId, attempt }]);
      return new ActiveExecution(p, session, assignments[0]!);
    };
    return { ...team, take, ref: { executionId, attempt } };
  }

  test("starts when the machine takes it over", async () => {
    const { run, ref, take } = await dispatched();
    await claimedAgo({ ref }, 300);
    const execution = await take();
    const takenAt = await claimedAgo(execution, 20);
    await (await execution.start()).complete("DONE");
    const [interval] = await intervalsOf(run.uid);
    expect([interval.which, interval.started_at]).toEqual(["1/1", takenAt]);
    expect(interval.ended_at.getTime() - takenAt.getTime()).toBeLessThan(300_000);
  });

  test("is empty if no machine took it over", async () => {
    const { run, ref, worker } = await dispatched();
    await claimedAgo({ ref }, 300);
    await p.life.worker.failDispatch(worker.session, { ...ref, reason: "pod_failed", message: "No node." });
    const [interval] = await intervalsOf(run.uid);
    expect([interval.which, interval.started_at]).toEqual(["1/1", interval.ended_at]);
  });

  test("ends when the machine is known to be gone", async () => {
    const { run, ref, worker, take } = await dispatched();
    const execution = await take();
    const takenAt = await claimedAgo(execution, 20);
    await p.life.worker.failDispatch(worker.session, {
      ...ref,
      reason: "pod_gone",
      message: "Evicted.",
      isTaken: true,
    });
    expect(await intervalsOf(run.uid)).toMatchObject([{ which: "1/1", started_at: takenAt }]);
  });
});

describe("the size of the sandbox", () => {
  const RUNNER = frozen({ instance_shape: { vcpus: 8, memory_gb: 32 } });
  const shapesOf = async (runUid: string) =>
    (await intervalsOf(runUid)).map(({ vcpus, memory_gb }) => [vcpus, memory_gb]);
  const ready = (execution: ActiveExecution, cpus: number, gb: number) =>
    execution.append(execution.event("sandbox_ready", { kind: "bwrap", limits: { cpus, memory_bytes: gb * GIB } }));

  test("is that which the worker enforces", async () => {
    const { worker, run } = await aTeam(RUNNER);
    const execution = await acceptExecution(p, worker);
    await ready(execution, 1.5, 0.5);
    await execution.append(execution.event("sandbox_stopped", {}));
    await execution.complete("DONE");
    expect(await shapesOf(run.uid)).toEqual([[1.5, 0.5]]);
  });

  test("is that of the runner if the worker reports none, or has no more processors", async () => {
    const { worker, run } = await aTeam(RUNNER);
    await (await startExecution(p, worker)).complete("DONE");
    expect(await shapesOf(run.uid)).toEqual([[8, 32]]);
    const large = await aTeam(RUNNER);
    const execution = await acceptExecution(p, large.worker);
    await ready(execution, 0, 16);
    await execution.complete("DONE");
    expect(await shapesOf(large.run.uid)).toEqual([[8, 16]]);
  });

  test("is 0 if nothing limits it", async () => {
    const { worker, run } = await aTeam();
    await (await startExecution(p, worker)).complete("DONE");
    expect(await shapesOf(run.uid)).toEqual([[0, 0]]);
  });

  test("is that of the attempt, not of the previous one", async () => {
    const { worker, run } = await aTeam();
    const first = await acceptExecution(p, worker);
    await ready(first, 2, 4);
    await returnLease(first, STOPPING);
    const second = await acceptExecution(p, worker);
    await ready(second, 1, 2);
    await returnLease(second, STOPPING);
    await (await acceptExecution(p, worker)).complete("DONE");
    expect(await shapesOf(run.uid)).toEqual([
      [2, 4],
      [1, 2],
      [0, 0],
    ]);
  });
});

describe("the end of an attempt is published", () => {
  const types = async (runUid: string) =>
    (await p.facts(runUid)).map(
      ({ type, payload }) => `${type.split(".")[2]} ${String(payload["to"] ?? payload["state"])}`,
    );

  test("with the change of state, and not a second time", async () => {
    const { worker, run } = await aTeam();
    await (await startExecution(p, worker)).complete("DONE");
    expect((await types(run.uid)).slice(-2)).toEqual(["state_changed SUCCEEDED", "finished SUCCEEDED"]);
  });

  test("on its own if its run was cancelled before, with a newer version of the run", async () => {
    const { worker, run, cancel } = await aTeam();
    const execution = await startExecution(p, worker);
    await cancel();
    await execution.complete("CANCELLED");
    expect((await types(run.uid)).slice(-3)).toEqual([
      "state_changed CANCELLED",
      "finished CANCELLED",
      "attempt_ended CANCELLED",
    ]);
    const last = (await p.facts(run.uid)).at(-1)!;
    expect(last.payload).toEqual({
      run_uid: run.uid,
      state: "CANCELLED",
      execution_id: execution.ref.executionId,
      attempt: 1,
    });
    expect(await rowsOf("SELECT version FROM runs WHERE uid = $1", run.uid)).toEqual([
      { version: last.entity_version },
    ]);
  });

  test("on its own if the run waits for its children, and when a debug window ends", async () => {
    const { caller, worker, run } = await aTeam();
    const execution = await startExecution(p, worker);
    const child = await p.run(caller, { parentRunUid: run.uid });
    await execution.complete("WAITING", { waitFor: { policy: "all", runUids: [child.uid] } });
    expect((await types(run.uid)).at(-1)).toBe("attempt_ended INPROGRESS");
    const retained = await aTeam();
    const failed = await acceptExecution(p, retained.worker);
    await failed.complete("FAILED", { error: ERROR, isRetained: true });
    expect((await types(retained.run.uid)).at(-1)).toBe("finished FAILED");
    await failed.complete("FAILED", { message: "window_expired" });
    expect((await types(retained.run.uid)).at(-1)).toBe("attempt_ended FAILED");
  });
});
