import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { domainError, eventually } from "@millwright/testing";
import { NOW, OTHER_TEAM, OWNER, startWorld, STRANGER, TEAM, VIEWER, type World } from "./setup.ts";

let w: World;
let ref: { factoryUid: string; scorerUid: string };
beforeAll(async () => {
  w = await startWorld();
});
beforeEach(async () => {
  await w.reset();
  const { uid, factoryUid } = await w.aScorer();
  ref = { factoryUid, scorerUid: uid };
});
afterAll(() => w?.stop());

const as = call(OWNER);
type AttemptInit = {
  scorerUid?: string;
  runUid?: string;
  state?: string;
  isCurrent?: boolean;
  score?: number;
  at?: string;
  scoredAt?: string;
  costMicros?: number;
  reason?: string;
  reasonStatus?: string;
  failure?: string;
  judgeRunUid?: string;
};
/** Inserts an attempt in its final form: scored, unless another state is given. */
async function anAttempt(init: AttemptInit = {}): Promise<{ uid: string; runUid: string }> {
  const [uid, runUid, state, at] = [
    newUid(),
    init.runUid ?? newUid(),
    init.state ?? "scored",
    init.at ?? NOW.toISOString(),
  ];
  const isScored = state === "scored";
  await w.rows(
    `INSERT INTO attempts (uid, scorer_uid, run_uid, factory_uid, team_uid, conversation_uid, title, trigger_source, requester_type, requester_uid, state, is_current, config, run_version,
                           classification, score, scored_at, cost_micros, reason, reason_status, failure_code, failure_message, judge_run_uid, judge_time_ms, judge_usage, attempted_at)
     VALUES ($1, $2, $3, $4, $5, $6, 'Fix it', 'automatic', 'user', 'u-1', $7, $8, '{}', 1, $9, $10, $11, $12, $13, $14, $15, $16, $17, 1500, '{"total_tokens": 7}', $18)`,
    [
      uid,
      init.scorerUid ?? ref.scorerUid,
      runUid,
      ref.factoryUid,
      TEAM,
      newUid(),
      state,
      init.isCurrent ?? true,
      isScored ? "good" : null,
      isScored ? (init.score ?? 1) : null,
      isScored ? (init.scoredAt ?? at) : null,
      init.costMicros ?? 0,
      init.reason ?? null,
      init.reasonStatus ?? (init.reason === undefined ? "absent" : "available"),
      state === "failed" ? (init.failure ?? "judge_failed") : null,
      state === "failed" ? "The judge failed." : null,
      init.judgeRunUid ?? null,
      at,
    ],
  );
  return { uid, runUid };
}
const minute = (n: number) => `2026-11-20T09:${String(n).padStart(2, "0")}:00.000Z`;
const results = (request: object = {}) => w.scorers.listResults({ ...ref, ...request }, as);

describe("results of a scorer", () => {
  test("are paged newest first with the attempt uid as the tiebreak, without gaps or repeats", async () => {
    const made = [];
    for (let n = 0; n < 7; n++) made.push(await anAttempt({ at: minute(Math.floor(n / 3)) }));
    const expected = made
      .map(({ uid }, n) => ({ uid, at: Math.floor(n / 3) }))
      .toSorted((a, b) => b.at - a.at || (a.uid < b.uid ? 1 : -1))
      .map(({ uid }) => uid);
    const seen: string[] = [];
    for (let pageToken = ""; ;) {
      const page = await results({ pageSize: 2, pageToken });
      seen.push(...page.results.map(({ attemptUid }) => attemptUid));
      if ((pageToken = page.nextPageToken) === "") break;
    }
    expect(seen).toEqual(expected);
    const { nextPageToken } = await results({ pageSize: 2 });
    const other = await w.aScorer({ factoryUid: ref.factoryUid, name: "Other" });
    await expect(
      w.scorers.listResults({ factoryUid: ref.factoryUid, scorerUid: other.uid, pageToken: nextPageToken }, as),
    ).rejects.toEqual(domainError({ reason: "invalid_cursor" }));
  });

  test("outcome is computed on read from the current threshold, score is frozen", async () => {
    const { runUid } = await anAttempt({ score: 0.4, judgeRunUid: newUid() });
    const [before] = (await results()).results;
    expect(before).toMatchObject({
      runUid,
      status: "scored",
      isInFlight: false,
      classification: "good",
      score: 0.4,
      outcome: "fail",
      conversationTitle: "Fix it",
      scoringRunTimeMs: 1_500n,
      scoringRunUsage: { total_tokens: 7 },
    });
    await w.scorers.updateScorer(
      {
        scorer: { uid: ref.scorerUid, factoryUid: ref.factoryUid, threshold: 0.4 },
        updateMask: { paths: ["threshold"] },
      },
      as,
    );
    expect((await results()).results[0]).toMatchObject({ score: 0.4, outcome: "pass" });
  });

  test("stay scored while a replacement is judged, are in flight without a score, and report why they failed", async () => {
    const [scored, failed, retried, pending] = [newUid(), newUid(), newUid(), newUid()];
    await anAttempt({ runUid: scored, at: minute(9) });
    await anAttempt({ runUid: scored, state: "judging", isCurrent: false });
    await anAttempt({ runUid: failed, state: "failed", failure: "judge_timeout", at: minute(8) });
    await anAttempt({ runUid: retried, state: "failed", at: minute(7) });
    await anAttempt({ runUid: retried, state: "pending", isCurrent: false });
    await anAttempt({ runUid: pending, state: "pending", at: minute(6) });
    const found = (await results()).results.map(({ runUid, status, isInFlight, outcome, failureCode }) => [
      runUid,
      status,
      isInFlight,
      outcome,
      failureCode,
    ]);
    expect(found).toEqual([
      [scored, "scored", true, "pass", undefined],
      [failed, "failed", false, "", "judge_timeout"],
      [retried, "in_flight", true, "", undefined],
      [pending, "in_flight", true, "", undefined],
    ]);
  });

  test("of named runs are one page, leave out unknown runs, and ignore the page size", async () => {
    const made = [];
    for (let n = 0; n < 3; n++) made.push(await anAttempt({ at: minute(n) }));
    const runUids = [made[0]!.runUid, newUid(), "no uid", made[2]!.runUid];
    const page = await results({ runUids, pageSize: 1, pageToken: "ignored" });
    expect(page).toMatchObject({
      results: [{ attemptUid: made[2]!.uid }, { attemptUid: made[0]!.uid }],
      nextPageToken: "",
    });
    expect((await results({ runUids: ["no uid"] })).results).toEqual([]);
  });

  test("carry reasons only when they are asked for; an unreadable one fails nothing", async () => {
    await anAttempt({ reason: "Because.", at: minute(3) });
    await anAttempt({ reasonStatus: "unavailable", at: minute(2) });
    await anAttempt({ at: minute(1) });
    expect((await results()).results.map(({ reason, reasonStatus }) => [reasonStatus, reason])).toEqual(
      Array(3).fill(["", undefined]),
    );
    expect(
      (await results({ includeReasons: true })).results.map(({ reason, reasonStatus }) => [reasonStatus, reason]),
    ).toEqual([
      ["available", "Because."],
      ["unavailable", undefined],
      ["absent", undefined],
    ]);
  });

  test("are read with the right to view the factory and hidden from others", async () => {
    await anAttempt();
    expect((await w.scorers.listResults(ref, call(VIEWER))).results).toHaveLength(1);
    await expect(w.scorers.listResults(ref, call(STRANGER))).rejects.toEqual(
      domainError({ kind: "not_found", reason: "factory_not_found" }),
    );
    await expect(results({ scorerUid: "x" })).rejects.toEqual(
      domainError({ kind: "not_found", reason: "scorer_not_found" }),
    );
  });
});

describe("statistics in the list", () => {
  const listed = async (recentOutcomesLimit = 0) =>
    (await w.scorers.listScorers({ factoryUid: ref.factoryUid, recentOutcomesLimit }, as)).scorers[0]!.stats!;

  test("pass_rate_summary counts only the recent window, oldest first; result_count is all time", async () => {
    for (const [n, score] of [1, 0, 0.4, 1].entries()) await anAttempt({ score, scoredAt: minute(n) });
    await anAttempt({ state: "failed" });
    await anAttempt({ state: "pending" });
    expect(await listed()).toMatchObject({
      resultCount: 4n,
      passCount: 2,
      failCount: 2,
      recentOutcomes: ["pass", "fail", "fail", "pass"],
    });
    const two = await listed(2);
    expect(two).toMatchObject({ resultCount: 4n, passCount: 1, failCount: 1, recentOutcomes: ["fail", "pass"] });
    expect(timestampDate(two.lastScoredAt!).toISOString()).toBe(minute(3));
  });

  test("follow every change of attempts: replacements, deletions and scores that arrive at once", async () => {
    const { uid, runUid } = await anAttempt();
    const next = await anAttempt({ runUid, state: "judging", isCurrent: false });
    await w.rows("DELETE FROM attempts WHERE uid = $1", [uid]);
    expect(await listed()).toMatchObject({ resultCount: 0n });
    await w.rows("UPDATE attempts SET is_current = true WHERE uid = $1", [next.uid]);
    expect(await listed()).toMatchObject({ resultCount: 0n });
    await w.rows(
      "UPDATE attempts SET state = 'scored', classification = 'good', score = 1, scored_at = now() WHERE uid = $1",
      [next.uid],
    );
    expect(await listed()).toMatchObject({ resultCount: 1n });
    await Promise.all(Array.from({ length: 40 }, () => anAttempt()));
    expect(await listed()).toMatchObject({ resultCount: 41n });
    await w.rows("UPDATE attempts SET title = 'x'");
    await w.rows("DELETE FROM attempts WHERE uid IN (SELECT uid FROM attempts LIMIT 11)");
    const [counted] = await w.rows<{ count: number }>("SELECT count(*) AS count FROM attempts");
    expect([(await listed()).resultCount, counted!.count]).toEqual([30n, 30]);
  });

  test("are zero without scores", async () => {
    expect(await listed()).toMatchObject({ resultCount: 0n, passCount: 0, failCount: 0, recentOutcomes: [] });
    expect((await listed()).lastScoredAt).toBeUndefined();
  });
});

describe("metrics", () => {
  const at = (text: string) => timestampFromDate(new Date(text));
  const metrics = (request: object = {}) => w.scorers.getScorerMetrics({ ...ref, ...request }, as);

  test("a 30-day window has 31 day buckets, which is the default", async () => {
    await anAttempt({ scoredAt: "2026-11-20T09:59:59.999Z", costMicros: 5 });
    await anAttempt({ scoredAt: "2026-11-20T10:00:00.000Z" }); // the end is exclusive
    await anAttempt({ scoredAt: "2026-10-21T10:00:00.000Z", score: 0, costMicros: 7 }); // the start is inclusive
    await anAttempt({ scoredAt: "2026-10-21T09:59:59.999Z" });
    const found = await metrics();
    expect(found).toMatchObject({ teamUid: TEAM, groupByPeriod: "day" });
    expect(found.periods).toHaveLength(31);
    expect(found.periods[0]).toMatchObject({ label: "2026-10-21", passCount: 0n, failCount: 1n, costMicros: 0n });
    expect(found.periods[30]).toMatchObject({ label: "2026-11-20", passCount: 1n, failCount: 0n });
    expect([found.startDate, found.endDate, found.asOf].map((time) => timestampDate(time!).toISOString())).toEqual([
      "2026-10-21T10:00:00.000Z",
      NOW.toISOString(),
      NOW.toISOString(),
    ]);
    expect(
      (await metrics({ includeCost: true })).periods
        .filter(({ costMicros }) => costMicros > 0n)
        .map(({ label, costMicros }) => [label, costMicros]),
    ).toEqual([
      ["2026-10-21", 7n],
      ["2026-11-20", 5n],
    ]);
  });

  test("weeks start on Sunday, months are calendar months, and both are clipped to the range", async () => {
    await anAttempt({ scoredAt: "2026-11-14T23:59:59.000Z" }); // a Saturday
    await anAttempt({ scoredAt: "2026-11-15T00:00:00.000Z" }); // a Sunday
    const range = { startDate: at("2026-11-11T00:00:00Z"), endDate: at("2026-11-20T00:00:00Z") };
    expect(
      (await metrics({ ...range, groupByPeriod: "week" })).periods.map(({ label, passCount }) => [label, passCount]),
    ).toEqual([
      ["2026-11-08", 1n],
      ["2026-11-15", 1n],
    ]);
    expect(
      (await metrics({ ...range, groupByPeriod: "month" })).periods.map(({ label, passCount }) => [label, passCount]),
    ).toEqual([["2026-11-01", 2n]]);
    const clipped = await metrics({
      startDate: at("2026-11-14T23:59:59.500Z"),
      endDate: range.endDate,
      groupByPeriod: "month",
    });
    expect(clipped.periods).toMatchObject([{ passCount: 1n }]);
  });

  test("follow the threshold as it is now and count only live scores", async () => {
    const runUid = newUid();
    await anAttempt({ runUid, score: 0.4, scoredAt: minute(0) });
    await anAttempt({ runUid, state: "judging", isCurrent: false });
    await w.scorers.updateScorer(
      {
        scorer: { uid: ref.scorerUid, factoryUid: ref.factoryUid, threshold: 0.4 },
        updateMask: { paths: ["threshold"] },
      },
      as,
    );
    expect((await metrics()).periods.at(-1)).toMatchObject({ passCount: 1n, failCount: 0n });
  });

  test("refuse a range that is empty or touches more than 365 periods", async () => {
    await expect(metrics({ startDate: at("2026-11-20T10:00:00Z") })).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason: "date_range_invalid" }),
    );
    const year = { startDate: at("2025-11-21T00:00:00Z"), endDate: at("2026-11-21T00:00:00Z") };
    expect((await metrics(year)).periods).toHaveLength(365);
    await expect(metrics({ ...year, endDate: at("2026-11-21T00:00:00.001Z") })).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason: "too_many_periods" }),
    );
    await expect(metrics({ groupByPeriod: "hour" })).rejects.toEqual(domainError({ reason: "period_invalid" }));
  });
});

describe("scores of a run", () => {
  test("are the current attempt per scorer, most recent first, for callers that may view the run", async () => {
    const run = w.orchestrator.aRun({ teamUid: TEAM });
    const other = await w.aScorer({ factoryUid: ref.factoryUid, name: "Other" });
    await anAttempt({ runUid: run.uid, at: minute(1) });
    await anAttempt({ runUid: run.uid, scorerUid: other.uid, at: minute(2), state: "failed", failure: "judge_failed" });
    await anAttempt({});
    const { scores } = await w.scorers.listRunScores({ runUid: run.uid }, call(VIEWER));
    expect(scores).toMatchObject([
      {
        scorerUid: other.uid,
        scorerId: other.id,
        scorerName: "Other",
        attemptStatus: "failed",
        failureCode: "judge_failed",
        triggerSource: "automatic",
      },
      { scorerUid: ref.scorerUid, scorerName: "Style", attemptStatus: "scored", classification: "good" },
    ]);
    await w.scorers.deleteScorer({ factoryUid: ref.factoryUid, scorerUid: other.uid }, as);
    expect((await w.scorers.listRunScores({ runUid: run.uid }, as)).scores).toMatchObject([
      { scorerUid: ref.scorerUid },
    ]);
  });

  test("of runs that are absent, malformed or of another team are the same 404", async () => {
    const foreign = w.orchestrator.aRun({ teamUid: OTHER_TEAM });
    const absent = await w.scorers.listRunScores({ runUid: newUid() }, as).catch((error: unknown) => error);
    expect(absent).toMatchObject({ kind: "not_found", reason: "run_not_found" });
    for (const runUid of [foreign.uid, "x"])
      await expect(w.scorers.listRunScores({ runUid }, as)).rejects.toEqual(absent);
  });
});

describe("deleting a scorer", () => {
  test("leaves nothing of it to read, and cancels the judge runs in flight", async () => {
    const judge = w.orchestrator.aRun({ teamUid: TEAM, state: "INPROGRESS" });
    const ended = w.orchestrator.aRun({ teamUid: TEAM });
    const [run, other] = [
      w.orchestrator.aRun({ teamUid: TEAM }),
      await w.aScorer({ factoryUid: ref.factoryUid, name: "Other" }),
    ];
    await anAttempt({ runUid: run.uid, reason: "Because.", judgeRunUid: newUid() });
    await anAttempt({ runUid: run.uid, state: "judging", isCurrent: false, judgeRunUid: judge.uid });
    await anAttempt({ state: "judging", judgeRunUid: ended.uid });
    await anAttempt({ state: "judging", judgeRunUid: newUid() });
    await anAttempt({ runUid: run.uid, scorerUid: other.uid });
    await w.scorers.putSelfImprovement(
      { factoryUid: ref.factoryUid, selfImprovement: { scorerUid: ref.scorerUid } },
      as,
    );
    await w.scorers.deleteScorer(ref, as);
    for (const table of ["attempts", "self_improvements", "self_improvement_runs", "trial_scores"])
      expect(await w.rows(`SELECT 1 FROM ${table} WHERE scorer_uid = $1`, [ref.scorerUid])).toEqual([]);
    await expect(results()).rejects.toEqual(domainError({ reason: "scorer_not_found" }));
    await expect(w.scorers.deleteScorer(ref, as)).rejects.toEqual(domainError({ reason: "scorer_not_found" }));
    expect((await w.scorers.listRunScores({ runUid: run.uid }, as)).scores).toMatchObject([{ scorerUid: other.uid }]);
    w.service.work.start();
    await eventually(async () =>
      expect(await w.rows("SELECT state FROM stream.work_items WHERE kind = 'cancel-judge-run'")).toEqual(
        Array(3).fill({ state: "done" }),
      ),
    );
    await w.service.work.stop();
    expect(w.orchestrator.cancelled).toEqual([judge.uid]);
    expect((await w.eventTypes()).at(-1)).toBe("scorer.deleted");
  });

  test("needs the right to manage the factory", async () => {
    await expect(w.scorers.deleteScorer(ref, call(VIEWER))).rejects.toEqual(domainError({ reason: "not_authorized" }));
    await expect(w.scorers.deleteScorer(ref, call(STRANGER))).rejects.toEqual(
      domainError({ kind: "not_found", reason: "factory_not_found" }),
    );
    expect((await results()).results).toEqual([]);
  });
});
