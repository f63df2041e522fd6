import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { actorOf } from "@millwright/caller";
import { DomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import {
  aBenchmark,
  aStoredScorer,
  attemptsOf,
  COMMIT,
  makeWorkDue,
  queuedRuns,
  scoreStates,
  settle,
  stateOf,
  trialRuns,
  trialsOf,
} from "./benchmark-world.ts";
import { OTHER_TEAM, OWNER, startWorld, TEAM, type World } from "./setup.ts";

let w: World;
beforeAll(async () => void (w = await startWorld()));
afterAll(() => w?.stop());
beforeEach(() => w.reset());

const lost = () => {
  throw new DomainError({ kind: "unavailable", reason: "service_unavailable", message: "The connection was lost." });
};
const finishAll = (state = "SUCCEEDED"): void => {
  for (const { uid } of queuedRuns(w)) w.orchestrator.finish(uid, state);
};

test("a trial is a run of the suite's agent with the task's prompt and commits, on behalf of the launcher", async () => {
  const benchmark = await aBenchmark(w);
  await settle(w.service);
  const [trial] = await trialsOf(w, benchmark);
  const [run, ...others] = trialRuns(w);
  expect(others).toEqual([]);
  expect(run!.request).toMatchObject({
    title: "Task 0",
    prompt: "Prompt 0",
    source: "BENCHMARK_TRIAL",
    ownerType: "team",
    ownerUid: TEAM,
    agentUid: benchmark.agentUid,
    factoryUid: benchmark.factoryUid,
    causeKey: `trial:${trial!.uid}:1`,
    metadata: { benchmark_run_id: benchmark.uid, trial_id: trial!.uid },
    pinnedRepositories: [{ owner: "acme", repo: "prices", commit: COMMIT }],
    dispatcherConfig: { harness: { type: "oz" }, model_id: "model-0" },
  });
  expect(JSON.stringify({ ...run!.request, metadata: {} })).not.toMatch(/Criteria|source_run/);
  expect([run!.caller!.principal, actorOf(run!.caller!)]).toMatchObject([
    { type: "service", uid: "scoring" },
    { type: "user", uid: OWNER.principal.uid },
  ]);
  expect([trial!.state, trial!.run_uid, await attemptsOf(w, trial!.uid), await stateOf(w, benchmark)]).toEqual([
    "running",
    run!.uid,
    ["1 running"],
    "running",
  ]);
});

test("trials run in the order of the manifest, at most as many at once as the parallelism, until all are done", async () => {
  const benchmark = await aBenchmark(w, { tasks: 3, configurations: 2, repetitions: 3, parallelism: 5 });
  const uids = (await trialsOf(w, benchmark)).map(({ uid }) => uid);
  for (let done = 0; done < 18; done += 5) {
    await settle(w.service);
    expect(queuedRuns(w)).toHaveLength(Math.min(5, 18 - done));
    finishAll();
  }
  await settle(w.service);
  expect([trialRuns(w).length, new Set(trialRuns(w).map(({ causeKey }) => causeKey))]).toEqual([
    18,
    new Set(uids.map((uid) => `trial:${uid}:1`)),
  ]);
  const startedAt = await w.rows<{ position: number }>("SELECT position FROM trials ORDER BY started_at, position");
  expect(startedAt.map(({ position }) => position)).toEqual(uids.map((_, n) => n));
  expect(new Set((await trialsOf(w, benchmark)).map(({ state }) => state))).toEqual(new Set(["succeeded"]));
  expect([await stateOf(w, benchmark), (await w.eventTypes()).filter((type) => type.startsWith("benchmark"))]).toEqual([
    "completed",
    ["benchmark_run.finished"],
  ]);
});

test("the trials of a team over all its benchmark runs have a limit, which other teams do not share", async () => {
  for (let n = 0; n < 4; n++) await aBenchmark(w, { repetitions: 6, parallelism: 3 });
  await aBenchmark(w, { repetitions: 6, parallelism: 6, teamUid: OTHER_TEAM });
  await settle(w.service);
  const owners = queuedRuns(w).map(({ teamUid }) => teamUid);
  expect([owners.filter((team) => team === TEAM).length, owners.filter((team) => team === OTHER_TEAM).length]).toEqual([
    8, 6,
  ]);
});

test("while a trial waits because its team is at a limit, no other trial of the team joins it", async () => {
  const benchmark = await aBenchmark(w, { repetitions: 10, parallelism: 1 });
  w.orchestrator.isAtCapacity = true;
  await settle(w.service);
  await w.rows("UPDATE benchmark_runs SET parallelism = 4 WHERE uid = $1", [benchmark.uid]);
  await settle(w.service);
  expect(queuedRuns(w)).toHaveLength(1);
  w.orchestrator.isAtCapacity = false;
  finishAll();
  await settle(w.service);
  expect(queuedRuns(w)).toHaveLength(4);
});

test("replicas that advance the same benchmark runs at once start each trial once and exceed no bound", async () => {
  const replica = w.replica();
  await Promise.all(Array.from({ length: 3 }, () => aBenchmark(w, { repetitions: 9, parallelism: 4 })));
  let most = 0;
  while (trialRuns(w).length < 27 || queuedRuns(w).length > 0) {
    await Promise.all([settle(w.service), settle(replica)]);
    most = Math.max(most, queuedRuns(w).length);
    expect(most).toBeGreaterThan(0);
    finishAll();
  }
  await settle(w.service);
  expect([most, trialRuns(w).length, new Set(trialRuns(w).map(({ causeKey }) => causeKey)).size]).toEqual([8, 27, 27]);
  expect(await w.rows("SELECT DISTINCT state FROM benchmark_runs")).toEqual([{ state: "completed" }]);
});

describe("a process that dies between the creation of a run and its record", () => {
  beforeEach(() => void (w.orchestrator.beforeResponse = lost));

  test("loses nothing: the run's event records it, and the next try creates no other", async () => {
    const benchmark = await aBenchmark(w);
    await settle(w.service);
    for (const consumer of w.service.consumers) await consumer.drain();
    const [trial] = await trialsOf(w, benchmark);
    expect([trial!.state, trial!.run_uid]).toEqual(["running", trialRuns(w)[0]!.uid]);
    w.orchestrator.beforeResponse = () => {};
    await makeWorkDue(w);
    await settle(w.service);
    finishAll();
    await settle(w.service);
    expect([trialRuns(w).length, await stateOf(w, benchmark), await attemptsOf(w, trial!.uid)]).toEqual([
      1,
      "completed",
      ["1 succeeded"],
    ]);
  });

  test("loses nothing without the event: the next try finds the run by its cause", async () => {
    const benchmark = await aBenchmark(w);
    await w.service.benchmarkEngine.loop.advanceDue();
    await w.service.work.drain();
    expect((await trialsOf(w, benchmark))[0]!.run_uid).toBeNull();
    w.orchestrator.beforeResponse = () => {};
    await makeWorkDue(w);
    await w.service.work.drain();
    expect([trialRuns(w).length, (await trialsOf(w, benchmark))[0]!.run_uid]).toEqual([1, trialRuns(w)[0]!.uid]);
  });
});

test("a run that ends before its creation is recorded ends its trial once", async () => {
  const benchmark = await aBenchmark(w);
  w.orchestrator.beforeResponse = async ([uid]) => {
    w.orchestrator.finish(uid!);
    for (const consumer of w.service.consumers) await consumer.drain();
  };
  await settle(w.service);
  const [trial] = await trialsOf(w, benchmark);
  expect([
    trial!.state,
    await attemptsOf(w, trial!.uid),
    await stateOf(w, benchmark),
    w.orchestrator.cancelled,
  ]).toEqual(["succeeded", ["1 succeeded"], "completed", []]);
});

test("events that are repeated, or come after a follow-up to an ended run, change nothing", async () => {
  const benchmark = await aBenchmark(w);
  await settle(w.service);
  const [run] = trialRuns(w);
  w.orchestrator.finish(run!.uid);
  w.orchestrator.publishFinished(run!.uid);
  await settle(w.service);
  run!.described.state = "QUEUED";
  w.orchestrator.finish(run!.uid, "FAILED");
  await settle(w.service);
  const [trial] = await trialsOf(w, benchmark);
  expect([trial!.state, trial!.attempt_count, await attemptsOf(w, trial!.uid), await stateOf(w, benchmark)]).toEqual([
    "succeeded",
    1,
    ["1 succeeded"],
    "completed",
  ]);
});

test("events of runs that no trial caused change nothing, independent of their cause", async () => {
  const benchmark = await aBenchmark(w);
  await settle(w.service);
  const [trial] = await trialsOf(w, benchmark);
  const cause = `trial:${trial!.uid}:1`;
  const stranger = newUid();
  w.orchestrator.feed.push({
    type: "millwright.run.created.v1",
    entityUid: stranger,
    cause,
    payload: { run_uid: stranger, source: "API" },
  });
  w.orchestrator.feed.push({
    type: "millwright.run.finished.v1",
    entityUid: trial!.run_uid!,
    payload: { run_uid: trial!.run_uid!, source: "API", state: "FAILED" },
  });
  await settle(w.service);
  expect((await trialsOf(w, benchmark))[0]).toEqual(trial);
});

describe("the scores of trials", () => {
  test("are judged with the scorer as it was at launch, correctness by the task's criteria", async () => {
    const [correct, style] = [await aStoredScorer(w, "benchmark_task_correctness"), await aStoredScorer(w)];
    const rule = { checks: [{ kind: "state", in: ["SUCCEEDED"] }], pass: "good", fail: "bad" } as const;
    const benchmark = await aBenchmark(w, {
      scorers: [
        { uid: correct, kind: "benchmark_task_correctness" },
        { uid: style, rule, model_id: "rule" },
      ],
    });
    await settle(w.service);
    expect(await scoreStates(w, benchmark)).toEqual(["awaiting_trial", "awaiting_trial"]);
    finishAll();
    for (const consumer of w.service.consumers) await consumer.drain();
    await w.service.work.drain();
    const [trial] = await trialsOf(w, benchmark);
    const attempts = await w.rows<{ scorer_uid: string; config: object; requester_uid: string }>(
      "SELECT scorer_uid, config, run_uid, trial_uid, trigger_source, requester_uid, run_version FROM attempts",
    );
    const shared = {
      run_uid: trial!.run_uid,
      trial_uid: trial!.uid,
      trigger_source: "benchmark",
      requester_uid: OWNER.principal.uid,
      run_version: 2,
    };
    expect(attempts.toSorted((a) => (a.scorer_uid === correct ? -1 : 1))).toMatchObject([
      {
        ...shared,
        scorer_uid: correct,
        config: { scorer_version: 3, scoring_prompt: "Criteria 0", model_id: "judge-large", rule: null },
      },
      { ...shared, scorer_uid: style, config: { scorer_version: 3, scoring_prompt: "Good?", model_id: "rule", rule } },
    ]);
  });

  test("their benchmark run is in scoring until all of them are terminal", async () => {
    const scorer = await aStoredScorer(w);
    const benchmark = await aBenchmark(w, { repetitions: 2, scorers: [{ uid: scorer }] });
    await settle(w.service);
    finishAll();
    w.orchestrator.beforeCreate = lost; // prevents the judges from starting
    await settle(w.service);
    expect(await stateOf(w, benchmark)).toBe("scoring");
    await w.rows("UPDATE trial_scores SET state = 'finished_unscored' WHERE trial_uid = $1", [
      (await trialsOf(w, benchmark))[0]!.uid,
    ]);
    await settle(w.service);
    expect(await stateOf(w, benchmark)).toBe("scoring");
    await w.rows("DELETE FROM scorers WHERE uid = $1", [scorer]);
    await settle(w.service);
    expect([await stateOf(w, benchmark), await scoreStates(w, benchmark)]).toEqual(["completed", []]);
  });

  test("by a rule complete their benchmark run", async () => {
    const rule = { checks: [{ kind: "state", in: ["SUCCEEDED"] }], pass: "good", fail: "bad" } as const;
    const benchmark = await aBenchmark(w, {
      repetitions: 2,
      scorers: [{ uid: await aStoredScorer(w), rule, model_id: "rule" }],
    });
    await settle(w.service);
    finishAll();
    await settle(w.service);
    expect([await stateOf(w, benchmark), await scoreStates(w, benchmark)]).toEqual(["completed", ["scored", "scored"]]);
    expect(await w.rows("SELECT DISTINCT classification, score FROM trial_scores")).toEqual([
      { classification: "good", score: 1 },
    ]);
  });

  test("of trials that failed are not scoreable", async () => {
    const benchmark = await aBenchmark(w, { scorers: [{ uid: await aStoredScorer(w) }] });
    await settle(w.service);
    finishAll("FAILED");
    await settle(w.service);
    expect([await scoreStates(w, benchmark), await stateOf(w, benchmark)]).toEqual([["not_scoreable"], "completed"]);
  });

  test("wait for a judge of the same scorer and run that has not ended", async () => {
    const scorer = await aStoredScorer(w);
    const benchmark = await aBenchmark(w, { scorers: [{ uid: scorer }] });
    await settle(w.service);
    const [run] = trialRuns(w);
    const other = newUid();
    await w.rows(
      `INSERT INTO attempts (uid, scorer_uid, run_uid, factory_uid, team_uid, trigger_source, requester_type, requester_uid, is_current, config, run_version, attempted_at)
       VALUES ($1, $2, $3, $4, $5, 'automatic', 'user', 'u', true, '{}', 2, now())`,
      [other, scorer, run!.uid, benchmark.factoryUid, TEAM],
    );
    finishAll();
    await settle(w.service);
    expect(await w.rows("SELECT uid FROM attempts")).toEqual([{ uid: other }]);
    await w.rows("UPDATE attempts SET state = 'failed', failure_code = 'judge_failed' WHERE uid = $1", [other]);
    await makeWorkDue(w);
    await w.service.work.drain();
    const [trial] = await trialsOf(w, benchmark);
    expect(await w.rows("SELECT trial_uid FROM attempts WHERE uid <> $1", [other])).toEqual([
      { trial_uid: trial!.uid },
    ]);
  });
});

test("a replay scores the runs of the earlier trials again and starts no run", async () => {
  const scorer = await aStoredScorer(w);
  const first = await aBenchmark(w, { tasks: 2 });
  await settle(w.service);
  const [good, bad] = (await trialsOf(w, first)).map(({ run_uid: run }) => w.orchestrator.runs.get(run!));
  Object.assign(good!.described, { costMicros: 7n, totalTokens: 5n });
  w.orchestrator.finish(good!.uid);
  w.orchestrator.finish(bad!.uid, "FAILED");
  await settle(w.service);
  const replay = await aBenchmark(w, {
    tasks: 2,
    scorers: [{ uid: scorer }],
    replayedRunUid: first.uid,
    identifiers: { ...first.manifest.identifiers, scorers: [{ uid: scorer, id: 1, version: 3 }] },
  });
  for (let n = 0; n < 2; n++) {
    await w.service.benchmarkEngine.loop.advanceDue();
    await w.service.work.drain();
  }
  expect(trialRuns(w)).toHaveLength(2);
  const ends = (await trialsOf(w, replay)).map(({ state, run_uid: run }) => [state, run]);
  expect(ends).toEqual((await trialsOf(w, first)).map(({ state, run_uid: run }) => [state, run]));
  expect(await w.rows("SELECT run_uid FROM attempts")).toEqual([{ run_uid: good!.uid }]);
  expect(
    await w.rows(
      "SELECT cost_micros, total_tokens FROM trials WHERE benchmark_run_uid = $1 ORDER BY position LIMIT 1",
      [replay.uid],
    ),
  ).toEqual([{ cost_micros: 7, total_tokens: 5 }]);
  expect([(await scoreStates(w, replay))[1], await stateOf(w, first)]).toEqual(["not_scoreable", "completed"]);
});

test("a replayed trial that the earlier benchmark run lacks counts as missing", async () => {
  const first = await aBenchmark(w);
  await settle(w.service);
  finishAll();
  await settle(w.service);
  const replay = await aBenchmark(w, {
    repetitions: 2,
    replayedRunUid: first.uid,
    identifiers: first.manifest.identifiers,
  });
  await settle(w.service);
  expect((await trialsOf(w, replay)).map(({ state, is_infra_failure: isInfra }) => [state, isInfra])).toEqual([
    ["succeeded", false],
    ["failed", true],
  ]);
});
