import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { domainError } from "@millwright/testing";
import { judgeCaller, PASSING_RULE, startJudging, type JudgingWorld } from "./judging-setup.ts";
import { OWNER } from "./setup.ts";

let w: JudgingWorld;
beforeAll(async () => {
  w = await startJudging();
});
afterAll(() => w.stop());
beforeEach(() => w.begin());

/** Dispatches a pair and returns its active judge run. */
async function judged() {
  const scorer = await w.scorer();
  const run = w.run();
  return { scorer, run, judge: await w.judging(scorer, run) };
}

test("records a verdict with its reason", async () => {
  const { scorer, judge } = await judged();
  const { results } = await w.report(judge.uid, [{ scorerId: scorer, classification: "poor", reason: "Too long." }]);
  expect(results.map(({ status, error }) => [status, error])).toEqual([["accepted", ""]]);
  expect((await w.attempts())[0]).toMatchObject({
    state: "scored",
    classification: "poor",
    score: 0.4,
    reason: "Too long.",
    is_current: true,
  });
  expect(await w.eventTypes()).toEqual(["score.recorded"]);
});

test("accepts the legacy id of the scorer", async () => {
  const { scorer, judge } = await judged();
  const [row] = await w.rows<{ id: number }>("SELECT id FROM scorers WHERE uid = $1", [scorer]);
  const { results } = await w.report(judge.uid, [{ scorerId: String(row!.id), classification: "good" }]);
  expect(results[0]).toMatchObject({ scorerId: String(row!.id), status: "accepted" });
});

test("only the judge run itself reports; to others it does not exist", async () => {
  const { scorer, judge, run } = await judged();
  const verdict = [{ scorerId: scorer, classification: "good" }];
  const gone = domainError({ kind: "not_found", reason: "run_not_found" });
  for (const caller of [OWNER, judgeCaller(run.uid)])
    await expect(w.report(judge.uid, verdict, caller)).rejects.toEqual(gone);
  await expect(w.report(run.uid, verdict)).rejects.toEqual(gone);
  await expect(w.report(newUid(), verdict)).rejects.toEqual(gone);
  expect((await w.attempts())[0]!.state).toBe("judging");
});

test.each(["Good", "good ", "excellent", "", "__proto__", '"good"'])(
  "rejects the label %j, which was not captured at dispatch",
  async (classification) => {
    const { scorer, judge } = await judged();
    const { results } = await w.report(judge.uid, [{ scorerId: scorer, classification }]);
    expect(results[0]).toMatchObject({
      status: "rejected",
      error: `classification must be one of "good", "poor", "bad" (got ${JSON.stringify(classification)}).`,
    });
    expect((await w.attempts())[0]!.state).toBe("judging");
  },
);

test("labels are those of the dispatch, whatever the scorer has since", async () => {
  const { scorer, judge } = await judged();
  await w.rows(
    `UPDATE scorers SET labels = '[{"value": "new", "score": 1}, {"value": "good", "score": 0}]', version = 2 WHERE uid = $1`,
    [scorer],
  );
  const { results } = await w.report(judge.uid, [
    { scorerId: scorer, classification: "new" },
    { scorerId: scorer, classification: "good" },
  ]);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "accepted"]);
  expect((await w.attempts())[0]).toMatchObject({ classification: "good", score: 1 });
});

test("each verdict is handled by itself; a run judges for its own scorer only", async () => {
  const [mine, theirs] = [await judged(), await judged()];
  const { results } = await w.report(mine.judge.uid, [
    { scorerId: theirs.scorer, classification: "good" },
    { scorerId: "999999", classification: "good" },
    { scorerId: mine.scorer, classification: "bad" },
  ]);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected", "accepted"]);
  expect((await w.attempts()).map(({ scorer_uid: uid, state }) => `${uid} ${state}`).toSorted()).toEqual(
    [`${mine.scorer} scored`, `${theirs.scorer} judging`].toSorted(),
  );
});

test("the same report again is accepted and changes nothing; another one is rejected", async () => {
  const { scorer, judge } = await judged();
  const verdict = { scorerId: scorer, classification: "good", reason: "Fine." };
  for (const status of ["accepted", "accepted"])
    expect((await w.report(judge.uid, [verdict])).results[0]!.status).toBe(status);
  for (const other of [
    { ...verdict, classification: "bad" },
    { ...verdict, reason: "No." },
    { scorerId: scorer, failed: true },
  ]) {
    expect((await w.report(judge.uid, [other])).results[0]).toMatchObject({
      status: "rejected",
      error: "The attempt has another verdict already.",
    });
  }
  expect((await w.attempts())[0]).toMatchObject({ classification: "good", reason: "Fine." });
  expect(await w.eventTypes()).toEqual(["score.recorded"]);
});

test("a judge that could not decide fails the attempt, which is no score", async () => {
  const { scorer, judge } = await judged();
  for (const time of [1, 2])
    expect({
      time,
      status: (await w.report(judge.uid, [{ scorerId: scorer, failed: true, reason: "No diff." }])).results[0]!.status,
    }).toEqual({ time, status: "accepted" });
  expect((await w.attempts())[0]).toMatchObject({
    state: "failed",
    failure_code: "judge_undecided",
    failure_message: "No diff.",
    score: null,
  });
  expect(await w.eventTypes()).toEqual(["scoring_attempt.failed"]);
});

test("reasons are cut to 8 KiB between characters", async () => {
  const { scorer, judge } = await judged();
  await w.report(judge.uid, [{ scorerId: scorer, classification: "good", reason: `a${"€".repeat(4_000)}` }]);
  const { reason } = (await w.attempts())[0]!;
  expect(reason).toBe(`a${"€".repeat(2_730)}`);
});

test("a report of a rule's run is rejected", async () => {
  const scorer = await w.scorer({ rule: { ...PASSING_RULE, checks: [{ kind: "command", command: "true" }] } });
  const judge = await w.judging(scorer, w.run({ hasWorkspace: true }));
  expect((await w.report(judge.uid, [{ scorerId: scorer, classification: "good" }])).results[0]).toMatchObject({
    status: "rejected",
    error: "A rule decides this attempt, not a report.",
  });
});

test("a report that comes before the judge run is recorded is recorded, also when the work is carried out again", async () => {
  const { scorer, judge } = await judged();
  await w.rows("UPDATE attempts SET state = 'pending', judge_run_uid = NULL");
  expect((await w.report(judge.uid, [{ scorerId: scorer, classification: "good" }])).results[0]!.status).toBe(
    "accepted",
  );
  await w.rows("UPDATE stream.work_items SET state = 'waiting', due_at = now() - interval '1 second', lease = NULL");
  await w.settle();
  expect((await w.attempts())[0]).toMatchObject({ state: "scored", judge_run_uid: judge.uid });
  expect(w.orchestrator.cancelled).toEqual([]);
});

test("a run that is no judge run reports for no attempt, whatever its metadata names", async () => {
  const { scorer, judge } = await judged();
  await w.rows("UPDATE attempts SET state = 'pending', judge_run_uid = NULL");
  const impostor = w.run();
  Object.assign(impostor, { request: judge.request });
  await expect(w.report(impostor.uid, [{ scorerId: scorer, classification: "good" }])).rejects.toEqual(
    domainError({ reason: "run_not_found" }),
  );
});

test("concurrent reports record one verdict", async () => {
  const { scorer, judge } = await judged();
  const labels = ["good", "poor", "bad", "good", "poor", "bad"];
  const answers = await Promise.all(
    labels.map((classification) => w.report(judge.uid, [{ scorerId: scorer, classification }])),
  );
  const { classification } = (await w.attempts())[0]!;
  expect(answers.map(({ results }) => results[0]!.status)).toEqual(
    labels.map((label) => (label === classification ? "accepted" : "rejected")),
  );
  expect(await w.eventTypes()).toEqual(["score.recorded"]);
});

test("a score replaces the earlier attempts of its run, another run's are untouched", async () => {
  const { scorer, run, judge } = await judged();
  const theirs = w.run();
  const other = await w.judging(scorer, theirs);
  await w.report(other.uid, [{ scorerId: scorer, classification: "bad" }]);
  await w.report(judge.uid, [{ scorerId: scorer, classification: "good" }]);
  const again = await w.judging(scorer, run);
  await w.report(again.uid, [{ scorerId: scorer, classification: "poor" }]);
  expect((await w.attempts()).map(({ run_uid: uid, classification }) => `${uid} ${classification}`).toSorted()).toEqual(
    [`${run.uid} poor`, `${theirs.uid} bad`].toSorted(),
  );
});

test("nothing of a deleted scorer can be reported", async () => {
  const { scorer, judge } = await judged();
  await w.rows("DELETE FROM scorers WHERE uid = $1", [scorer]);
  await expect(w.report(judge.uid, [{ scorerId: scorer, classification: "good" }])).rejects.toEqual(
    domainError({ reason: "run_not_found" }),
  );
});
