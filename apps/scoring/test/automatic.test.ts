import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { PASSING_RULE, startJudging, type JudgingWorld } from "./judging-setup.ts";
import { TEAM } from "./setup.ts";

let w: JudgingWorld;
beforeAll(async () => {
  w = await startJudging();
});
afterAll(() => w.stop());
beforeEach(() => w.begin());

/** Returns the scorers that attempted a run, each with the state of its attempt. */
const outcomes = async () => (await w.attempts()).map(({ scorer_uid: scorer, state }) => `${scorer} ${state}`);

test("scores a finished run by every scorer in scope, and publishes the scores without their reasons", async () => {
  const all = await w.scorer({ rule: PASSING_RULE });
  const selected = await w.scorer({
    rule: PASSING_RULE,
    scopeMode: "selected_agents",
    agents: [{ agent_uid: w.at.agentUid, include_descendants: false }],
  });
  await w.scorer({
    rule: PASSING_RULE,
    scopeMode: "selected_agents",
    agents: [{ agent_uid: newUid(), include_descendants: true }],
  });
  await w.scorer({ rule: PASSING_RULE, samplingRate: 0 });
  await w.scorer({ rule: PASSING_RULE, enabled: false });
  await w.scorer({ rule: PASSING_RULE, kind: "benchmark_task_correctness" });
  await w.scorer({ rule: PASSING_RULE, factoryUid: w.aFactory() });
  w.orchestrator.publishFinished(w.run().uid);
  await w.settle();
  expect((await outcomes()).sort()).toEqual([`${all} scored`, `${selected} scored`].sort());
  expect(await w.eventTypes()).toEqual(["score.recorded", "score.recorded"]);
  const [event] = await w.rows<{ payload: object }>(
    "SELECT payload FROM stream.event_pending UNION ALL SELECT payload FROM stream.event_log",
  );
  expect(Object.keys(event!.payload).sort()).toEqual([
    "attempt_uid",
    "classification",
    "factory_uid",
    "run_uid",
    "score",
    "scorer_uid",
  ]);
});

test("a scope with descendants covers runs below its agents, one without does not", async () => {
  const parent = newUid();
  const below = await w.scorer({
    rule: PASSING_RULE,
    scopeMode: "selected_agents",
    agents: [{ agent_uid: parent, include_descendants: true }],
  });
  await w.scorer({
    rule: PASSING_RULE,
    scopeMode: "selected_agents",
    agents: [{ agent_uid: parent, include_descendants: false }],
  });
  w.orchestrator.publishFinished(w.run({ ancestorAgentUids: [parent] }).uid);
  await w.settle();
  expect(await outcomes()).toEqual([`${below} scored`]);
});

test.each([
  ["a judge run", { source: "RUN_SCORER" }],
  ["a benchmark trial", { source: "BENCHMARK_TRIAL" }],
  ["a run without a conversation", { hasConversation: false }],
  ["a run without an agent", { agentUid: "" }],
  ["a run of no factory", { factoryUid: "" }],
  ["a run that another team owns", { ownerUid: newUid() }],
  ["a run that a person owns", { ownerType: "user" }],
])("does not score %s", async (_name, described) => {
  await w.scorer({ rule: PASSING_RULE });
  w.orchestrator.publishFinished(w.run(described).uid);
  await w.settle();
  expect(await w.attempts()).toEqual([]);
});

test("a sampling rate picks its share of the runs, and a lower rate picks a subset of them", async () => {
  const half = await w.scorer({ rule: PASSING_RULE, samplingRate: 50 });
  const runs = Array.from({ length: 60 }, () => w.run());
  for (const run of runs) w.orchestrator.publishFinished(run.uid);
  await w.settle();
  const scored = new Set((await w.attempts()).map((attempt) => attempt.run_uid));
  expect(scored.size).toBeGreaterThan(10);
  expect(scored.size).toBeLessThan(50);
  await w.rows("UPDATE scorers SET sampling_rate = 25 WHERE uid = $1", [half]);
  await w.rows("DELETE FROM attempts");
  await w.rows("DELETE FROM stream.work_items");
  await w.rows("DELETE FROM stream.feed_cursors");
  await w.settle();
  const fewer = (await w.attempts()).map((attempt) => attempt.run_uid);
  expect(fewer.length).toBeLessThan(scored.size);
  expect(fewer.every((uid) => scored.has(uid))).toBe(true);
});

test("waits for the cool-down after the end of the run", async () => {
  await w.scorer({ rule: PASSING_RULE });
  const run = w.run();
  w.orchestrator.publishFinished(run.uid);
  const occurredAt = new Date();
  w.orchestrator.feed[0]!.occurredAt = occurredAt;
  await w.settle();
  expect(await w.attempts()).toEqual([]);
  const [item] = await w.rows<{ due_at: Date }>("SELECT due_at FROM stream.work_items WHERE kind = 'score-runs'");
  expect(item!.due_at.getTime()).toBe(occurredAt.getTime() + 30_000);
});

test("an end that was followed by another one is not scored; the newest is", async () => {
  await w.scorer({ rule: PASSING_RULE });
  const run = w.run();
  w.orchestrator.publishFinished(run.uid);
  run.described.version = 7n;
  w.orchestrator.publishFinished(run.uid);
  await w.settle();
  expect((await w.attempts()).map(({ run_version: version }) => version)).toEqual([7]);
  expect(await w.rows("SELECT 1 FROM finished_runs")).toEqual([]);
});

test("a run that continues is not scored until it ends, and then its score is replaced", async () => {
  await w.scorer({ rule: PASSING_RULE });
  const run = w.run();
  w.orchestrator.publishFinished(run.uid);
  await w.settle();
  Object.assign(run.described, { state: "INPROGRESS", version: 5n });
  await w.settle();
  expect((await w.attempts()).map(({ run_version: version, classification }) => [version, classification])).toEqual([
    [4, "good"],
  ]);
  w.orchestrator.finish(run.uid, "FAILED");
  await w.settle();
  expect(
    (await w.attempts()).map(({ run_version: version, classification, is_current: isCurrent }) => [
      version,
      classification,
      isCurrent,
    ]),
  ).toEqual([[6, "bad", true]]);
});

test("an end during the judging of an earlier one is scored after it", async () => {
  const scorer = await w.scorer();
  const run = w.run();
  w.orchestrator.publishFinished(run.uid);
  await w.settle();
  const judge = [...w.orchestrator.runs.values()].find(({ causeKey }) => causeKey)!;
  Object.assign(run.described, { version: 6n });
  w.orchestrator.publishFinished(run.uid);
  await w.settle();
  expect((await w.attempts()).map(({ run_version: version, state }) => [version, state])).toEqual([[4, "judging"]]);
  await w.report(judge.uid, [{ scorerId: scorer, classification: "good" }]);
  await w.rows("UPDATE stream.work_items SET due_at = now() - interval '1 second' WHERE state = 'waiting'");
  await w.settle();
  expect(
    (await w.attempts()).map(({ run_version: version, state, is_current: isCurrent }) => [version, state, isCurrent]),
  ).toEqual([
    [4, "scored", true],
    [6, "judging", false],
  ]);
});

test("a run that waits for its judge does not delay the runs that ended at the same time", async () => {
  const scorer = await w.scorer();
  const [busy, free] = [w.run(), w.run()];
  await w.judging(scorer, busy);
  Object.assign(busy.described, { version: 6n });
  for (const run of [busy, free]) w.orchestrator.publishFinished(run.uid);
  await w.settle();
  expect((await w.attempts()).map(({ run_uid: uid, run_version: version }) => [uid, version])).toEqual([
    [busy.uid, 4],
    [free.uid, 4],
  ]);
});

test("starts one attempt when the work is carried out twice", async () => {
  await w.scorer();
  w.orchestrator.publishFinished(w.run().uid);
  await w.settle();
  await w.rows("UPDATE stream.work_items SET state = 'waiting', due_at = now() - interval '1 second'");
  await w.rows("UPDATE attempts SET state = 'pending', judge_run_uid = NULL");
  await w.settle();
  expect((await w.attempts()).map(({ state, trigger_source: source }) => [state, source])).toEqual([
    ["judging", "automatic"],
  ]);
  expect([...w.orchestrator.runs.values()].filter(({ causeKey }) => causeKey)).toHaveLength(1);
});

test("runs of a team without scorers leave no work", async () => {
  w.orchestrator.publishFinished(w.run({ ownerUid: TEAM }).uid);
  await w.settle();
  expect(await w.rows("SELECT 1 FROM stream.work_items")).toEqual([]);
});
