import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { newUid, NIL_UUID } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { domainError } from "@millwright/testing";
import { PASSING_RULE, startJudging, type JudgingWorld } from "./judging-setup.ts";
import { OTHER_TEAM, OWNER, STRANGER, VIEWER } from "./setup.ts";

let w: JudgingWorld;
beforeAll(async () => {
  w = await startJudging();
});
afterAll(() => w.stop());
beforeEach(() => w.begin());

const counts = async () => ({
  attempts: (await w.attempts()).length,
  work: (await w.rows("SELECT 1 FROM stream.work_items")).length,
});
const NOTHING = { attempts: 0, work: 0 };

test("starts one scorer on many runs, in the order of the request, at a sampling rate of 0", async () => {
  const scorer = await w.scorer({ samplingRate: 0 });
  const runs = [w.run(), w.run(), w.run({ state: "FAILED" })].map(({ uid }) => uid);
  const { results } = await w.dispatch([scorer], [` ${runs[0]!.toUpperCase()} `, runs[1]!, runs[0]!, runs[2]!]);
  expect(
    results.map(({ runUid, scorerUid, status, error, scoringRunUid }) => [
      runUid,
      scorerUid,
      status,
      error,
      scoringRunUid,
    ]),
  ).toEqual(runs.map((uid) => [uid, scorer, "dispatched", "", ""]));
  expect((await w.attempts()).map(({ trigger_source: source, state }) => [source, state])).toEqual(
    runs.map(() => ["manual", "pending"]),
  );
});

test("starts many scorers on one run, also on one that was scored before", async () => {
  const scorers = [await w.scorer({ rule: PASSING_RULE }), await w.scorer({ rule: PASSING_RULE })];
  const run = w.run();
  for (const time of [1, 2]) {
    const { results } = await w.dispatch(scorers, [run.uid]);
    expect({ time, outcomes: results.map(({ scorerUid, status }) => [scorerUid, status]) }).toEqual({
      time,
      outcomes: scorers.map((uid) => [uid, "dispatched"]),
    });
    await w.settle();
  }
  expect((await w.attempts()).map(({ state, is_current: isCurrent }) => [state, isCurrent])).toEqual([
    ["scored", true],
    ["scored", true],
  ]);
});

test("150 run ids of which 100 are distinct pass, 101 distinct fail", async () => {
  const scorer = await w.scorer();
  const runs = Array.from({ length: 101 }, () => w.run().uid);
  await expect(w.dispatch([scorer], runs)).rejects.toEqual(
    domainError({ kind: "invalid_argument", reason: "dispatch_invalid" }),
  );
  expect(await counts()).toEqual(NOTHING);
  const { results } = await w.dispatch([scorer], [...runs.slice(0, 100), ...runs.slice(0, 50)]);
  expect(results).toHaveLength(100);
});

test.each([
  ["no run", () => []],
  ["a blank run", () => [" "]],
  ["the nil UUID", () => [NIL_UUID]],
  ["a run that is no UUID", () => ["run-1"]],
])("refuses %s", async (_name, runs) => {
  await expect(w.dispatch([await w.scorer()], runs())).rejects.toEqual(
    domainError({ kind: "invalid_argument", reason: "dispatch_invalid" }),
  );
});

test("refuses several scorers with several runs", async () => {
  const scorers = [await w.scorer(), await w.scorer()];
  await expect(w.dispatch(scorers, [w.run().uid, w.run().uid])).rejects.toEqual(
    domainError({ reason: "dispatch_invalid" }),
  );
});

test("needs the right to manage the factory and to view the runs", async () => {
  const [scorer, run] = [await w.scorer(), w.run()];
  await expect(w.dispatch([scorer], [run.uid], VIEWER)).rejects.toEqual(domainError({ kind: "permission_denied" }));
  await expect(w.dispatch([scorer], [run.uid], STRANGER)).rejects.toEqual(domainError({ reason: "factory_not_found" }));
  const foreign = w.orchestrator.aRun({ teamUid: OTHER_TEAM, factoryUid: w.at.factoryUid, agentUid: w.at.agentUid });
  for (const uid of [foreign.uid, newUid()])
    await expect(w.dispatch([scorer], [run.uid, uid])).rejects.toEqual(
      domainError({ kind: "not_found", reason: "run_not_found" }),
    );
  const ofOther = await w.scorer({ factoryUid: w.aFactory() });
  for (const uid of [ofOther, newUid()])
    await expect(w.dispatch([scorer, uid], [run.uid])).rejects.toEqual(
      domainError({ kind: "not_found", reason: "scorer_not_found" }),
    );
  expect(await counts()).toEqual(NOTHING);
});

test.each([
  ["has no conversation", { hasConversation: false }, "run_not_scoreable"],
  ["was not executed by an agent", { agentUid: "" }, "run_not_scoreable"],
  ["is a scoring job", { source: "RUN_SCORER" }, "run_not_scoreable"],
  ["is of another factory", { factoryUid: newUid() }, "run_not_scoreable"],
  ["is of another team", { ownerUid: OTHER_TEAM }, "run_not_scoreable"],
  ["has not ended", { state: "INPROGRESS" }, "run_not_scoreable"],
  ["is of an agent out of scope", { agentUid: newUid() }, "agent_out_of_scope"],
])("one run of 100 that %s starts nothing", async (_name, described, reason) => {
  const scorer = await w.scorer({
    scopeMode: "selected_agents",
    agents: [{ agent_uid: w.at.agentUid, include_descendants: false }],
  });
  const runs = [...Array.from({ length: 99 }, () => w.run().uid), w.run(described).uid];
  await expect(w.dispatch([scorer], runs)).rejects.toEqual(domainError({ kind: "invalid_argument", reason }));
  expect(await counts()).toEqual(NOTHING);
});

test("refuses scorers that benchmarks manage", async () => {
  const [user, managed] = [await w.scorer(), await w.scorer({ kind: "benchmark_task_correctness" })];
  await expect(w.dispatch([user, managed], [w.run().uid])).rejects.toEqual(
    domainError({ kind: "invalid_argument", reason: "scorer_managed" }),
  );
  expect(await counts()).toEqual(NOTHING);
});

test.each([
  ["deleted", "DELETE FROM scorers WHERE uid = $1", "scorer_not_found"],
  ["given another scope", "UPDATE scorers SET scope_mode = 'selected_agents' WHERE uid = $1", "agent_out_of_scope"],
])("a scorer that is %s while the request is checked lets nothing start", async (_name, change, reason) => {
  const scorers = [await w.scorer(), await w.scorer()];
  const run = w.run();
  w.orchestrator.beforeDescribe = async () => void (await w.rows(change, [scorers[1]]));
  await expect(w.dispatch(scorers, [run.uid])).rejects.toEqual(domainError({ reason }));
  expect(await counts()).toEqual(NOTHING);
});

test("100 concurrent requests for the same pair start one attempt", async () => {
  const [scorer, run] = [await w.scorer(), w.run()];
  const answers = await Promise.all(Array.from({ length: 100 }, () => w.dispatch([scorer], [run.uid])));
  const outcomes = answers.flatMap(({ results }) => results);
  expect(outcomes.filter(({ status }) => status === "dispatched")).toHaveLength(1);
  expect(new Set(outcomes.filter(({ status }) => status === "failed").map(({ error }) => error))).toEqual(
    new Set(["An attempt of this scorer on this run is in flight."]),
  );
  expect(await counts()).toEqual({ attempts: 1, work: 1 });
});

test("concurrent requests whose pairs overlap start each pair once", async () => {
  const scorer = await w.scorer();
  const runs = Array.from({ length: 20 }, () => w.run().uid);
  await Promise.all(
    Array.from({ length: 10 }, (_, index) => w.dispatch([scorer], index % 2 === 0 ? runs : runs.toReversed())),
  );
  expect(await counts()).toEqual({ attempts: 20, work: 20 });
});

test("a score remains current while a newer attempt is judged, and after that one failed", async () => {
  const [scorer, run] = [await w.scorer(), w.run()];
  const first = await w.judging(scorer, run);
  await w.report(first.uid, [{ scorerId: scorer, classification: "good" }]);
  const second = await w.judging(scorer, run);
  expect((await w.attempts()).map(({ state, is_current: isCurrent }) => [state, isCurrent])).toEqual([
    ["scored", true],
    ["judging", false],
  ]);
  await w.report(second.uid, [{ scorerId: scorer, failed: true }]);
  expect((await w.attempts()).map(({ state, is_current: isCurrent }) => [state, isCurrent])).toEqual([
    ["scored", true],
    ["failed", false],
  ]);
});

test("without a score the newest attempt is current", async () => {
  const [scorer, run] = [await w.scorer(), w.run()];
  const first = await w.judging(scorer, run);
  await w.report(first.uid, [{ scorerId: scorer, failed: true }]);
  await w.judging(scorer, run);
  expect((await w.attempts()).map(({ state, is_current: isCurrent }) => [state, isCurrent])).toEqual([
    ["failed", false],
    ["judging", true],
  ]);
});

test("the dispatch of an unknown factory returns the same error as that of another team's factory", async () => {
  const request = { factoryUid: newUid(), scorerUids: [await w.scorer()], runUids: [w.run().uid] };
  await expect(w.scorers.dispatchScoring(request, call(OWNER))).rejects.toEqual(
    domainError({ kind: "not_found", reason: "factory_not_found" }),
  );
});
