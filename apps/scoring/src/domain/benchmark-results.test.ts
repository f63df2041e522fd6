import { describe, expect, test } from "@jest/globals";
import { BASE, CANDIDATE, CORRECTNESS, HASH, PLAN, statsOf, STYLE, TASKS } from "../../test/benchmark-samples.ts";
import { seedOf } from "./benchmark-difference.ts";
import { METRIC_ARRAYS, type MetricRequest } from "./benchmark-metrics.ts";
import { benchmarkProgress } from "./benchmark-progress.ts";
import { benchmarkResults, type ResultsInput } from "./benchmark-results.ts";

const NOW = new Date("2026-11-20T10:02:00.000Z");
const RUN: ResultsInput["run"] = {
  uid: "0199c2f0-0000-7000-8000-000000000099" as ResultsInput["run"]["uid"],
  suiteName: "Nightly",
  state: "completed",
  repetitionCount: 3,
  incompleteReason: null,
  manifestHash: HASH,
  startedAt: new Date("2026-11-20T10:00:00.000Z"),
  completedAt: new Date("2026-11-20T10:01:30.500Z"),
};
const NO_METRICS: MetricRequest = { include: new Set() };

type Difference = {
  difference: number | null;
  interval: { low: number; high: number } | null;
  pairs: number;
  incomplete_pairs: number;
  differing_pairs: number;
  verdict: string;
};
type Configuration = {
  uid: string;
  scoring: {
    pass_count: number;
    fail_count: number;
    pass_rate: number | null;
    avg_score: number | null;
    interval: unknown;
    coverage: unknown;
    difference_to_baseline: Difference | null;
  };
  metrics: Record<string, unknown>;
  coverage: unknown;
};
type Row = {
  configuration_uid: string;
  scorer_uid?: string;
  task_uid?: string;
  tag?: string;
  pass_count: number;
  fail_count: number;
};
type Results = Record<string, unknown> & {
  configurations: Configuration[];
  run_metrics: Record<string, unknown>;
  scorers: unknown[];
  summary_narrative: string;
} & Record<`${string}_metrics`, Row[]>;

function results(
  base: string,
  candidate: string,
  { run = {}, metrics = NO_METRICS }: { run?: Partial<ResultsInput["run"]>; metrics?: MetricRequest } = {},
): Results {
  const stats = statsOf({ [BASE]: base, [CANDIDATE]: candidate });
  return benchmarkResults({ run: { ...RUN, ...run }, plan: PLAN, stats, metrics, now: NOW }) as unknown as Results;
}
const candidateOf = (document: Results): Configuration => document.configurations[1]!;

describe("the outcomes of a configuration", () => {
  test.each([
    ["all pass", "111 111 111", [9, 0, 1, 1]],
    ["some fail", "110 101 000", [4, 5, 0.444444, 0.444444]],
    ["the agent's failures are failures with score 0", "11a 1aa 111", [6, 3, 0.666667, 0.666667]],
    ["infrastructure failures count for nothing", "11i 1ii 111", [6, 0, 1, 1]],
    ["failed judges count for nothing", "11u 1uu 000", [3, 3, 0.5, 0.5]],
    ["trials that have not ended count for nothing", "1jr ppp ccc", [1, 0, 1, 1]],
    ["no trial has an outcome", "iii iii iii", [0, 0, null, null]],
  ])("when %s", (_what, letters, [passed, failed, rate, score]) => {
    const { scoring } = candidateOf(results("111 111 111", letters));
    expect([scoring.pass_count, scoring.fail_count, scoring.pass_rate, scoring.avg_score]).toEqual([
      passed,
      failed,
      rate,
      score,
    ]);
  });

  test("come with the Wilson interval of their pass rate, which is null without an outcome", () => {
    expect(candidateOf(results("111 111 111", "110 101 000")).scoring.interval).toEqual({
      low: expect.closeTo(0.1888, 4),
      high: expect.closeTo(0.7333, 4),
      confidence: 0.95,
      method: "wilson",
    });
    expect(candidateOf(results("111 111 111", "iii iii iii")).scoring.interval).toBeNull();
  });
});

describe("coverage", () => {
  test("counts the outcomes of all trials, so that missing ones are not hidden in an average", () => {
    const document = results("111 111 111", "11i 1ui aaa");
    expect(candidateOf(document).scoring).toMatchObject({
      pass_rate: 0.5,
      coverage: { expected: 9, received: 6, rate: 0.666667 },
    });
    expect(candidateOf(document).coverage).toEqual({ expected: 18, received: 9, rate: 0.5 });
    expect(document).toMatchObject({ coverage: { expected: 36, received: 27, rate: 0.75 }, infra_failed_trials: 2 });
    expect(document.scorers).toMatchObject([
      {
        scorer_uid: CORRECTNESS,
        coverage: { expected: 18, received: 15, rate: 0.833333 },
        configurations: [{ configuration_uid: BASE }, { pass_count: 3, fail_count: 3 }],
      },
      {
        scorer_uid: STYLE,
        coverage: { expected: 18, received: 12, rate: 0.666667 },
        configurations: [{ avg_score: 0.8 }, { pass_count: 3, avg_score: 0.8 }],
      },
    ]);
  });

  test("does not expect an outcome of trials that were cancelled before they were dispatched", () => {
    const document = results("11x xxx xxx", "1cx xxx xxx", { run: { state: "cancelled" } });
    expect(document.configurations.map(({ coverage }) => coverage)).toEqual([
      { expected: 4, received: 4, rate: 1 },
      { expected: 4, received: 2, rate: 0.5 },
    ]);
    expect(document).toMatchObject({ coverage: { expected: 8, received: 6 }, trial_progress: { cancelled: 15 } });
  });

  test("is null when nothing is expected, as for a selection without trials", () => {
    const document = benchmarkResults({
      run: RUN,
      plan: PLAN,
      stats: { trials: [], scores: [], scorerUids: [CORRECTNESS] },
      metrics: NO_METRICS,
      now: NOW,
    });
    expect(document).toMatchObject({
      coverage: { expected: 0, received: 0, rate: null },
      trial_progress: { total: 0 },
    });
  });

  test("leaves out scorers that were deleted", () => {
    const stats = { ...statsOf({ [BASE]: "111", [CANDIDATE]: "000" }), scorerUids: [CORRECTNESS] };
    const document = benchmarkResults({ run: RUN, plan: PLAN, stats, metrics: NO_METRICS, now: NOW });
    expect([document["scorers"], document["coverage"]]).toEqual([
      [expect.objectContaining({ scorer_uid: CORRECTNESS })],
      { expected: 6, received: 6, rate: 1 },
    ]);
  });
});

describe("the difference to the baseline", () => {
  test.each([
    ["a worse candidate", "111 111 111", "000 000 111", "worse", [-0.666667, 9, 0, 6]],
    ["a better candidate", "000 000 000", "111 111 110", "better", [0.888889, 9, 0, 8]],
    ["ties alone", "110 101 000", "110 101 000", "not distinguishable", [0, 9, 0, 0]],
    ["zero variance in too few pairs", "111 iii iii", "000 iii iii", "not distinguishable", [-1, 3, 6, 3]],
    ["zero variance in enough pairs", "111 111 iii", "000 000 000", "worse", [-1, 6, 3, 6]],
    ["opposite differences", "101 010 101", "010 101 010", "not distinguishable", [-0.111111, 9, 0, 9]],
    ["missing partners", "11i 1ii 111", "1ii i11 ppp", "not distinguishable", [0, 1, 8, 0]],
    ["no pair", "iii iii iii", "111 111 111", "not distinguishable", [null, 0, 9, 0]],
  ])("of %s", (_what, base, candidate, verdict, [difference, pairs, incomplete, differing]) => {
    const found = candidateOf(results(base, candidate)).scoring.difference_to_baseline!;
    expect([found.verdict, found.difference, found.pairs, found.incomplete_pairs, found.differing_pairs]).toEqual([
      verdict,
      difference,
      pairs,
      incomplete,
      differing,
    ]);
    expect(found).toMatchObject({
      baseline_configuration_uid: BASE,
      distinguishable: verdict !== "not distinguishable",
      seed: seedOf(HASH),
    });
  });

  test("is null for the baseline", () =>
    expect(results("111", "111").configurations[0]!.scoring.difference_to_baseline).toBeNull());

  test("has no interval with a single pair", () =>
    expect(candidateOf(results("1ii iii iii", "0ii iii iii")).scoring.difference_to_baseline).toMatchObject({
      difference: -1,
      interval: null,
      distinguishable: false,
    }));

  test("is the same in every reading", () =>
    expect(results("110 101 011", "100 010 001")).toEqual(results("110 101 011", "100 010 001")));
});

describe("benchmark stats are null before the first trial and real zeros after", () => {
  test("figures are null before the first trial is dispatched", () => {
    const [stats, run] = [
      statsOf({ [BASE]: "ppp ppp ppp", [CANDIDATE]: "ppp ppp ppp" }),
      { startedAt: null, completedAt: null },
    ];
    expect(benchmarkProgress(PLAN, stats, run, NOW)).toEqual({
      elapsed_s: null,
      trial_count: null,
      task_count: null,
      scorer_count: null,
      total_credits: null,
      cost_usd: null,
      configuration_stats: null,
      trial_progress: { total: 18, pending: 18, running: 0, succeeded: 0, failed: 0, cancelled: 0, completed: 0 },
      score_progress: {
        awaiting_trial: 36,
        pending: 0,
        judging: 0,
        scored: 0,
        finished_unscored: 0,
        not_scoreable: 0,
        received: 0,
        expected: 0,
      },
    });
    const { run_metrics: metrics } = results("ppp ppp ppp", "ppp ppp ppp", { run: { state: "pending", ...run } });
    expect(new Set(Object.values(metrics))).toEqual(new Set([null]));
  });

  test("figures are real zeros once a trial was dispatched, and averages of other configurations stay null", () => {
    const stats = statsOf({ [BASE]: "rpp ppp ppp", [CANDIDATE]: "ppp ppp ppp" });
    expect(benchmarkProgress(PLAN, stats, { startedAt: NOW, completedAt: null }, NOW)).toMatchObject({
      elapsed_s: 0,
      trial_count: 18,
      task_count: 3,
      scorer_count: 2,
      total_credits: "0",
      configuration_stats: [
        {
          uid: BASE,
          id: 1,
          role: "baseline",
          display_name: "large",
          trial_count: 9,
          pass_count: 0,
          fail_count: 0,
          pass_rate: null,
          avg_total_credits_per_trial: "0",
          avg_wall_time_s: 0,
        },
        { uid: CANDIDATE, model: "model-s", avg_total_credits_per_trial: null, avg_wall_time_s: null },
      ],
    });
  });

  test("costs are the trials' and the judges', and averages are per trial that ended", () => {
    const document = results("111 111 111", "11i aaa 0u0", { run: { state: "completed" } });
    expect(document.run_metrics).toEqual({
      total_credits: "0",
      compute_credits: "0",
      platform_credits: "0",
      scoring_credits: "0",
      cost_usd: 0.206,
      scoring_cost_usd: 0.026,
      elapsed_s: 90.5,
    });
    expect(candidateOf(document)).toMatchObject({
      retry_count: 2,
      retried_trial_count: 1,
      infra_failed_trials: 1,
      runner_id: expect.any(String),
      metrics: {
        trial_count: 9,
        total_credits: "0",
        avg_total_credits_per_trial: "0",
        wall_time_s_total: 18,
        avg_wall_time_s: 2,
        dollars: 0.09,
        avg_dollars_per_trial: 0.01,
        total_tokens: 900,
      },
    });
  });
});

test("averages are per trial that ended after it was dispatched", () => {
  const samples = ["11x xxx xxx", "0cr xxx xxx"] as const;
  const averages = { avg_wall_time_s: 2, avg_total_credits_per_trial: "0" };
  const document = results(...samples, { metrics: { include: new Set(["configuration_metrics"]) } });
  expect(document).toMatchObject({
    configurations: [{ metrics: { ...averages, avg_dollars_per_trial: 0.01 } }, {}],
    configuration_metrics: [{ avg_wall_time_s: 2 }, {}],
  });
  const stats = statsOf({ [BASE]: samples[0], [CANDIDATE]: samples[1] });
  expect(benchmarkProgress(PLAN, stats, { startedAt: NOW, completedAt: NOW }, NOW)).toMatchObject({
    configuration_stats: [{ ...averages, trial_count: 9 }, {}],
  });
  expect(candidateOf(results("xxx", "xxx")).metrics).toMatchObject({
    avg_wall_time_s: null,
    avg_total_credits_per_trial: null,
    avg_dollars_per_trial: null,
  });
});

describe("the state of results", () => {
  test.each([
    ["pending", true, "pending"],
    ["running", true, "pending"],
    ["scoring", true, "pending"],
    ["completed", false, "available"],
    ["failed", false, "unavailable"],
    ["cancelled", false, "unavailable"],
  ] as const)("of a %s run is provisional: %s, with a summary that is %s", (state, provisional, status) => {
    const document = results("111 111 111", "11j 111 111", { run: { state } });
    expect(document).toMatchObject({
      run_state: state,
      provisional,
      summary_status: status,
      trials_being_judged: 1,
      trials_scoring_finished: 17,
    });
    expect("summary_narrative" in document).toBe(status === "available");
  });

  test("the summary states how sure the results are and only numbers that they contain", () => {
    expect(results("111 111 111", "000 000 11i").summary_narrative).toBe(
      "18 trials with 2 configurations and 2 scorers. 34 of 36 expected outcomes are known (coverage 94.4 %). 1 trial failed for infrastructure reasons and has no outcome. " +
        "large passed 9 of 9 trials (100.0 %, 95 % interval 70.1 % to 100.0 %). small passed 2 of 8 trials (25.0 %, 95 % interval 7.1 % to 59.1 %). " +
        "small is worse than large: -75.0 percentage points over 8 pairs of trials, of which 6 differ (95 % interval -100.0 to -37.5). The estimated cost is $0.214.",
    );
    expect(results("110 111 111", "111 110 111").summary_narrative).toContain(
      "small is not distinguishable from large: 0.0 percentage points over 9 pairs",
    );
  });
});

describe("metric arrays", () => {
  const all = (more: Partial<MetricRequest> = {}) =>
    results("110 101 000", "111 000 0i0", { metrics: { include: new Set(METRIC_ARRAYS), ...more } });

  test("are included by name", () => {
    expect(METRIC_ARRAYS.filter((name) => name in results("111", "111"))).toEqual([]);
    expect(METRIC_ARRAYS.map((name) => all()[name]!.length)).toEqual([2, 4, 12, 8]);
  });

  test("of tasks and tags add up to the configuration's correctness", () => {
    const { configuration_metrics: configurations, task_metrics: tasks, tag_metrics: tags } = all();
    const of = (rows: Row[] | undefined, key: Partial<Row>): number[] =>
      rows!
        .filter((row) => Object.entries(key).every(([name, value]) => row[name as keyof Row] === value))
        .map((row) => row.pass_count);
    expect(of(configurations, {})).toEqual([4, 3]);
    expect(TASKS.map((task_uid) => of(tasks, { task_uid, scorer_uid: CORRECTNESS }))).toEqual([
      [2, 3],
      [2, 0],
      [0, 0],
    ]);
    expect(["api", "fast"].map((tag) => of(tags, { tag, scorer_uid: CORRECTNESS }))).toEqual([
      [2, 3],
      [4, 3],
    ]);
  });

  test("are limited by configuration and scorer, while aggregates are not", () => {
    const document = all({ configurationUids: new Set([CANDIDATE]), scorerUids: new Set([STYLE]) });
    expect(METRIC_ARRAYS.map((name) => document[name]!.length)).toEqual([1, 1, 3, 2]);
    expect([document.configurations.length, document.scorers.length]).toEqual([2, 2]);
  });
});
