import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { DomainError, notFound } from "@millwright/errors";
import {
  aBenchmark,
  aStoredScorer,
  attemptsOf,
  cancelBenchmark,
  makeWorkDue,
  queuedRuns,
  scoreStates,
  settle,
  stateOf,
  trialRuns,
  trialsOf,
} from "./benchmark-world.ts";
import { startWorld, type World } from "./setup.ts";

let w: World;
beforeAll(async () => void (w = await startWorld()));
afterAll(() => w?.stop());
beforeEach(() => w.reset());

const end = async (state: string, errorCode = ""): Promise<void> => {
  for (const { uid } of queuedRuns(w)) w.orchestrator.finish(uid, state, errorCode);
  await settle(w.service);
  await makeWorkDue(w);
  await settle(w.service);
};

describe("infrastructure failures", () => {
  test("are retried twice as attempts of the same trial, then the trial failed for infrastructure", async () => {
    const benchmark = await aBenchmark(w, { scorers: [{ uid: await aStoredScorer(w) }] });
    await settle(w.service);
    const [trial] = await trialsOf(w, benchmark);
    for (const attempts of [2, 3]) {
      await end("ERROR", "resource_unavailable");
      expect((await trialsOf(w, benchmark))[0]).toMatchObject({
        state: "running",
        attempt_count: attempts,
        run_uid: trialRuns(w).at(-1)!.uid,
      });
    }
    await end("ERROR", "internal_error");
    expect((await trialsOf(w, benchmark))[0]).toMatchObject({
      state: "failed",
      terminal_reason: "failure",
      is_infra_failure: true,
      attempt_count: 3,
    });
    expect(await attemptsOf(w, trial!.uid)).toEqual([
      "1 failed resource_unavailable",
      "2 failed resource_unavailable",
      "3 failed internal_error",
    ]);
    expect(trialRuns(w).map(({ causeKey }) => causeKey)).toEqual([1, 2, 3].map((n) => `trial:${trial!.uid}:${n}`));
    expect(await scoreStates(w, benchmark)).toEqual(["not_scoreable"]);
    const [run] = await w.rows("SELECT state, incomplete_reason FROM benchmark_runs");
    expect(run).toEqual({
      state: "failed",
      incomplete_reason: expect.stringContaining("Every trial failed because of the platform's infrastructure"),
    });
  });

  test("of one trial do not fail a benchmark run whose other trials have results", async () => {
    const benchmark = await aBenchmark(w, { repetitions: 2 });
    await settle(w.service);
    w.orchestrator.finish(queuedRuns(w)[1]!.uid);
    for (let n = 0; n < 3; n++) await end("ERROR", "resource_unavailable");
    expect([await stateOf(w, benchmark), (await trialsOf(w, benchmark)).map(({ state }) => state).toSorted()]).toEqual([
      "completed",
      ["failed", "succeeded"],
    ]);
  });

  test("add what their attempts used to the figures of the trial", async () => {
    const benchmark = await aBenchmark(w);
    await settle(w.service);
    Object.assign(trialRuns(w)[0]!.described, {
      costMicros: 10n,
      totalTokens: 100n,
      runTimeMs: 1_000n,
      requestUsage: { total_tokens: 100 },
    });
    await end("ERROR", "resource_unavailable");
    Object.assign(trialRuns(w)[1]!.described, {
      costMicros: 5n,
      totalTokens: 50n,
      runTimeMs: 500n,
      requestUsage: { total_tokens: 50 },
    });
    await end("SUCCEEDED");
    expect(
      await w.rows("SELECT state, attempt_count, cost_micros, total_tokens, wall_time_ms, usage FROM trials"),
    ).toEqual([
      {
        state: "succeeded",
        attempt_count: 2,
        cost_micros: 15,
        total_tokens: 150,
        wall_time_ms: 1_500,
        usage: { total_tokens: 150 },
      },
    ]);
    expect(await stateOf(w, benchmark)).toBe("completed");
  });

  test("of a run that is refused for good are retried and reported with the reason", async () => {
    const benchmark = await aBenchmark(w);
    w.orchestrator.beforeCreate = () => {
      throw notFound("agent");
    };
    await settle(w.service);
    for (let n = 0; n < 3; n++) await end("none is queued");
    const [trial] = await trialsOf(w, benchmark);
    expect(trial).toMatchObject({ state: "failed", is_infra_failure: true, attempt_count: 3 });
    expect(await attemptsOf(w, trial!.uid)).toEqual([
      "1 failed agent_not_found",
      "2 failed agent_not_found",
      "3 failed agent_not_found",
    ]);
  });

  test("of an orchestrator that does not answer are not counted while it may come back", async () => {
    const benchmark = await aBenchmark(w);
    w.orchestrator.beforeCreate = () => {
      throw new DomainError({ kind: "unavailable", reason: "service_unavailable", message: "Away." });
    };
    await settle(w.service);
    for (let n = 0; n < 3; n++) await end("none is queued");
    w.orchestrator.beforeCreate = () => {};
    await end("none is queued");
    const [trial] = await trialsOf(w, benchmark);
    expect([trial!.state, trial!.attempt_count, trialRuns(w).length]).toEqual(["running", 1, 1]);
  });
});

test.each([
  ["FAILED", "agent_reported_failure", "failure"],
  ["FAILED", "budget_exceeded", "failure"],
  ["BLOCKED", "", "failure"],
  ["CANCELLED", "", "failure"],
  ["ERROR", "agent_process_failed", "failure"],
  ["ERROR", "infrastructure_timeout", "timeout"],
])("a run that ends %s %s is a failure of its agent and is not retried", async (state, errorCode, reason) => {
  const benchmark = await aBenchmark(w);
  await settle(w.service);
  await end(state, errorCode);
  expect((await trialsOf(w, benchmark))[0]).toMatchObject({
    state: "failed",
    terminal_reason: reason,
    is_infra_failure: false,
    attempt_count: 1,
  });
  expect([trialRuns(w).length, await stateOf(w, benchmark)]).toEqual([1, "completed"]);
});

describe("a cancelled benchmark run", () => {
  test("starts no further trial, and its running ones are cancelled with their runs", async () => {
    const benchmark = await aBenchmark(w, { repetitions: 4, parallelism: 2 });
    await settle(w.service);
    const running = queuedRuns(w).map(({ uid }) => uid);
    await cancelBenchmark(w, benchmark);
    await settle(w.service);
    await settle(w.service);
    expect([trialRuns(w).length, w.orchestrator.cancelled.toSorted()]).toEqual([2, running.toSorted()]);
    expect((await trialsOf(w, benchmark)).map(({ state }) => state)).toEqual([
      "cancelled",
      "cancelled",
      "cancelled",
      "cancelled",
    ]);
    expect(await w.rows("SELECT DISTINCT state FROM trial_attempts")).toEqual([{ state: "cancelled" }]);
  });

  test("cancels a run that is being created at that moment", async () => {
    const benchmark = await aBenchmark(w);
    w.orchestrator.beforeCreate = () => cancelBenchmark(w, benchmark);
    await settle(w.service);
    await settle(w.service);
    expect([trialRuns(w).length, w.orchestrator.cancelled]).toEqual([1, [trialRuns(w)[0]!.uid]]);
    expect((await trialsOf(w, benchmark))[0]!.state).toBe("cancelled");
  });

  test("cancels a run whose creator died before it was recorded", async () => {
    const benchmark = await aBenchmark(w);
    w.orchestrator.beforeResponse = async () => {
      await cancelBenchmark(w, benchmark);
      throw new DomainError({ kind: "unavailable", reason: "service_unavailable", message: "Lost." });
    };
    await settle(w.service);
    await settle(w.service);
    expect(w.orchestrator.cancelled).toEqual([trialRuns(w)[0]!.uid]);
  });

  test("creates no run for a trial that had started and whose run was not created yet", async () => {
    const benchmark = await aBenchmark(w);
    await w.service.benchmarkEngine.loop.advanceDue();
    await cancelBenchmark(w, benchmark);
    await settle(w.service);
    expect(trialRuns(w)).toEqual([]);
    expect(await w.rows("SELECT state FROM trial_attempts")).toEqual([{ state: "cancelled" }]);
  });

  test("does not retry the infrastructure failure of a trial", async () => {
    const benchmark = await aBenchmark(w);
    await settle(w.service);
    const [run] = queuedRuns(w);
    w.orchestrator.finish(run!.uid, "ERROR", "resource_unavailable");
    await cancelBenchmark(w, benchmark);
    await settle(w.service);
    expect([
      trialRuns(w).length,
      (await trialsOf(w, benchmark))[0]!.state,
      (await trialsOf(w, benchmark))[0]!.attempt_count,
    ]).toEqual([1, "cancelled", 1]);
  });

  test("does not stop the judges of trials that had succeeded", async () => {
    const rule = { checks: [{ kind: "state", in: ["SUCCEEDED"] }], pass: "good", fail: "bad" } as const;
    const benchmark = await aBenchmark(w, {
      repetitions: 2,
      scorers: [{ uid: await aStoredScorer(w), rule, model_id: "rule" }],
    });
    await settle(w.service);
    w.orchestrator.finish((await trialsOf(w, benchmark))[0]!.run_uid!);
    for (const consumer of w.service.consumers) await consumer.drain();
    await cancelBenchmark(w, benchmark);
    await settle(w.service);
    expect([(await trialsOf(w, benchmark)).map(({ state }) => state), await scoreStates(w, benchmark)]).toEqual([
      ["succeeded", "cancelled"],
      ["scored", "not_scoreable"],
    ]);
  });

  test("tolerates runs that have finished or are gone, and tries again while one is being assigned", async () => {
    const benchmark = await aBenchmark(w, { repetitions: 3 });
    await settle(w.service);
    const [finished, gone, pending] = queuedRuns(w);
    w.orchestrator.finish(finished!.uid);
    w.orchestrator.runs.delete(gone!.uid);
    w.orchestrator.beforeCancel = (uid) => {
      if (uid === pending!.uid)
        throw new DomainError({ kind: "conflict", reason: "run_pending", message: "Being assigned.", retryable: true });
    };
    await cancelBenchmark(w, benchmark);
    await w.service.work.drain();
    expect(
      await w.rows("SELECT state, key FROM stream.work_items WHERE kind = 'cancel-trial-run' AND state <> 'done'"),
    ).toEqual([{ state: "waiting", key: pending!.uid }]);
    w.orchestrator.beforeCancel = () => {};
    await makeWorkDue(w);
    await settle(w.service);
    expect(w.orchestrator.cancelled).toEqual([pending!.uid]);
  });
});
