import { z } from "zod";
import { EXTENSION, timestamp, UserProfile } from "../../rest/index.ts";
import { Configuration, NewConfiguration, SuiteTask } from "./benchmark-schemas.ts";

export const BENCHMARK_RUN_STATES = ["pending", "running", "scoring", "completed", "failed", "cancelled"] as const;
export const BenchmarkRunState = z.enum(BENCHMARK_RUN_STATES).meta({ id: "BenchmarkRunState" });
export const RunInclude = z.enum(["launch_settings", "results", "creator"]);
export const ResultsInclude = z.enum(["configuration_metrics", "scorer_metrics", "task_metrics", "tag_metrics"]);
export const TrialInclude = z.enum(["scores", "metrics", "execution_history", "results", "details"]);

const ScorerId = z.union([z.int(), z.string().min(1)]);

/** The body of a launch. `parallelism` is a Millwright extension. */
export const Launch = z
  .object({
    repetition_count: z.int().min(1).meta({ description: "Trials per task and configuration." }),
    configurations: z
      .array(NewConfiguration)
      .min(1, "must not be empty; leave it out for those of the suite")
      .optional()
      .meta({ description: "Absent: those of the suite." }),
    scorer_selection: z.array(ScorerId).optional().meta({
      description:
        "Uids or numeric ids of scorers. Absent or empty: all applicable ones. Correctness is always scored.",
    }),
    tasks: z
      .array(z.string().min(1))
      .min(1, "must not be empty; leave it out for all tasks")
      .optional()
      .meta({ description: "Uids of tasks of the suite. Absent: all." }),
    historical_replay_run_uid: z
      .string()
      .min(1)
      .optional()
      .meta({ description: "Scores the trials of this benchmark run of the suite again instead of running new ones." }),
    parallelism: z
      .int()
      .min(1)
      .max(100)
      .optional()
      .meta({ ...EXTENSION, description: "Maximum concurrent trials; default 4." }),
  })
  .meta({ id: "LaunchBenchmarkRequest" });

export const Launched = z.object({ uid: z.string(), state: BenchmarkRunState });

const TrialProgress = z
  .looseObject({
    total: z.int(),
    pending: z.int(),
    running: z.int(),
    succeeded: z.int(),
    failed: z.int(),
    cancelled: z.int(),
    completed: z.int(),
  })
  .meta({
    id: "BenchmarkTrialProgress",
    description: "Retries count as part of their trial. completed = succeeded + failed + cancelled.",
  });

const ScoreProgress = z
  .looseObject({
    awaiting_trial: z.int(),
    pending: z.int(),
    judging: z.int(),
    scored: z.int(),
    finished_unscored: z.int(),
    not_scoreable: z.int(),
    received: z.int(),
    expected: z.int(),
  })
  .meta({
    id: "BenchmarkScoreProgress",
    description: "received = scored; expected = pending + judging + scored + finished_unscored.",
  });

const Interval = z.looseObject({ low: z.number(), high: z.number(), confidence: z.number(), method: z.string() }).meta({
  id: "ConfidenceInterval",
  ...EXTENSION,
  description: "The Wilson interval of a pass rate, or the paired-bootstrap interval of a difference.",
});

/** Results of one configuration of a benchmark run so far. */
const ConfigurationStats = z
  .looseObject({
    uid: z.string(),
    id: z.int(),
    role: z.enum(["baseline", "candidate"]),
    display_name: z.string(),
    trial_count: z.int(),
    pass_count: z.int(),
    fail_count: z.int(),
    pass_rate: z.number().nullable(),
    avg_total_credits_per_trial: z.string().nullable(),
    avg_wall_time_s: z.number().nullable(),
    harness: z.string().optional(),
    model: z.string().optional(),
    runner_id: z.string().optional(),
  })
  .meta({ id: "BenchmarkConfigurationStats" });

const Coverage = z
  .looseObject({ expected: z.int(), received: z.int(), rate: z.number().nullable() })
  .meta({ id: "BenchmarkCoverage", description: "Number of expected and received scores of a rate." });

/** The difference of two pass rates over the trials that both sides have. Millwright extension. */
const Difference = z
  .looseObject({
    difference: z.number().nullable(),
    interval: Interval.nullable(),
    pairs: z.int(),
    incomplete_pairs: z.int(),
    differing_pairs: z.int(),
    seed: z.int().meta({ description: "Seed of the bootstrap, derived from the manifest hash." }),
    resamples: z.int(),
    distinguishable: z.boolean(),
    verdict: z.enum(["better", "worse", "not distinguishable"]),
  })
  .meta({ id: "BenchmarkDifference" });

const Scoring = z
  .looseObject({
    pass_count: z.int(),
    fail_count: z.int(),
    pass_rate: z.number().nullable(),
    avg_score: z.number().nullable(),
    interval: Interval.nullable(),
    coverage: Coverage,
  })
  .meta({ id: "BenchmarkScoring" });

const ConfigurationResults = Configuration.extend({
  retry_count: z.int(),
  retried_trial_count: z.int(),
  infra_failed_trials: z
    .int()
    .meta({ ...EXTENSION, description: "Trials that failed because of the infrastructure. They have no outcome." }),
  metrics: z.looseObject({}),
  scoring: Scoring.extend({
    difference_to_baseline: Difference.extend({ baseline_configuration_uid: z.string() }).nullable().meta(EXTENSION),
  }).meta({ id: "BenchmarkConfigurationScoring" }),
  coverage: Coverage,
}).meta({ id: "BenchmarkConfigurationResults" });

const ScorerResults = z
  .looseObject({
    scorer_uid: z.string(),
    scorer_id: z.int(),
    name: z.string(),
    scorer_kind: z.string(),
    version: z.int(),
    threshold: z.number(),
    coverage: Coverage,
    configurations: z.array(Scoring.extend({ configuration_uid: z.string() })),
  })
  .meta({ id: "BenchmarkScorerResults" });

/** A row of a metric array. `pass_rate_interval` is a Millwright extension. */
const MetricRow = z
  .looseObject({
    configuration_uid: z.string(),
    scorer_uid: z.string().optional(),
    task_uid: z.string().optional(),
    tag: z.string().optional(),
    trial_count: z.int(),
    pass_count: z.int(),
    fail_count: z.int(),
    pass_rate: z.number().nullable(),
    avg_score: z.number().nullable(),
    total_credits: z.string().nullable(),
    avg_wall_time_s: z.number().nullable(),
    pass_rate_interval: Interval.nullable(),
    coverage: Coverage,
  })
  .meta({ id: "BenchmarkMetricRow" });
const metricRows = () => z.array(MetricRow).optional();

/** Results of a benchmark run. Intervals and differences to the baseline are Millwright extensions. */
export const BenchmarkResults = z
  .looseObject({
    benchmark_run_uid: z.string(),
    suite_name: z.string(),
    run_state: BenchmarkRunState,
    repetition_count: z.int(),
    provisional: z.boolean().meta({ description: "true until the run has finished." }),
    incomplete_reason: z.string().nullable(),
    trial_progress: TrialProgress,
    score_progress: ScoreProgress,
    trials_being_judged: z.int(),
    trials_scoring_finished: z.int(),
    run_metrics: z.looseObject({}).meta({ description: "Credits as strings, dollars as numbers." }),
    configurations: z.array(ConfigurationResults),
    summary_status: z.enum(["pending", "available", "unavailable"]),
    summary_narrative: z.string().optional(),
    coverage: Coverage,
    scorers: z.array(ScorerResults),
    configuration_metrics: metricRows(),
    scorer_metrics: metricRows(),
    task_metrics: metricRows(),
    tag_metrics: metricRows(),
  })
  .meta({ id: "BenchmarkResults" });

/** A benchmark run. `manifest` and `manifest_hash` are Millwright extensions. */
export const BenchmarkRun = z
  .object({
    uid: z.string(),
    factory_uid: z.string(),
    suite_uid: z.string(),
    suite_name: z.string(),
    suite_version: z.int(),
    state: BenchmarkRunState,
    created_at: timestamp(),
    updated_at: timestamp(),
    started_at: timestamp().nullable(),
    completed_at: timestamp().nullable(),
    agent_uid: z.string().optional(),
    agent_name: z.string().optional(),
    repetition_count: z.int(),
    elapsed_s: z.number().nullable(),
    trial_count: z.int().nullable(),
    task_count: z.int().nullable(),
    scorer_count: z.int().nullable(),
    total_credits: z.string().nullable(),
    cost_usd: z.number().nullable(),
    configuration_stats: z.array(ConfigurationStats).nullable().meta({ description: "null until a trial exists." }),
    trial_progress: TrialProgress.optional(),
    score_progress: ScoreProgress.optional(),
    manifest_hash: z.string().meta({ ...EXTENSION, description: "SHA-256 of the settings frozen at launch." }),
    historical_replay_run_uid: z.string().optional(),
    creator: UserProfile.optional().meta({ description: "With include `creator`." }),
    configurations: z.array(Configuration).optional().meta({
      description: "With include `launch_settings`, as frozen at launch; so are scorer_selection, tasks and manifest.",
    }),
    scorer_selection: z.array(ScorerId).optional(),
    tasks: z.array(SuiteTask).optional(),
    manifest: z
      .looseObject({})
      .optional()
      .meta({
        ...EXTENSION,
        description: "`content`, which the hash is computed from, and `identifiers` of the source records.",
      }),
    results: BenchmarkResults.optional().meta({ description: "With include `results`." }),
  })
  .meta({ id: "BenchmarkRun" });

export const Trial = z
  .looseObject({
    uid: z.string(),
    id: z.int().optional(),
    configuration_uid: z.string(),
    task_uid: z.string().optional(),
    task_title: z.string(),
    rep_index: z.int().meta({ description: "From 0." }),
    state: z.enum(["pending", "running", "succeeded", "failed", "cancelled"]),
    run_id: z.string().nullable(),
    attempt_count: z.int().meta({ description: "1: no retry." }),
    matched_attempt_number: z.int().optional().meta({ description: "With agent_run_id." }),
    terminal_reason: z.enum(["timeout", "failure"]).optional(),
    created_at: timestamp(),
    started_at: timestamp().nullable().optional(),
    completed_at: timestamp().nullable().optional(),
    scores: z.array(z.looseObject({ scorer_uid: z.string(), status: z.string() })).optional(),
    metrics: z.looseObject({}).nullable().optional(),
    attempts: z
      .array(z.looseObject({ attempt_number: z.int(), run_id: z.string().nullable(), state: z.string() }))
      .optional(),
    judge_runs: z.array(z.looseObject({})).optional(),
  })
  .meta({ id: "BenchmarkTrial" });

const ComparedRun = z.looseObject({
  uid: z.string(),
  state: BenchmarkRunState,
  suite_version: z.int(),
  manifest_hash: z.string(),
  created_at: timestamp(),
});

/** A comparison of two benchmark runs of a suite. Millwright extension. */
export const Comparison = z
  .looseObject({
    run: ComparedRun,
    other_run: ComparedRun,
    same_manifest: z.boolean(),
    shared_tasks: z.array(z.string()).meta({ description: "Titles." }),
    changed_tasks: z.array(z.string()).meta({ description: "Shared titles with other content." }),
    tasks_only_in_run: z.array(z.string()),
    tasks_only_in_other_run: z.array(z.string()),
    configurations: z.array(
      z.looseObject({
        role: z.string(),
        display_name: z.string(),
        configuration_uid: z.string(),
        other_configuration_uid: z.string(),
        run: Scoring,
        other_run: Scoring,
        difference: Difference,
        distinguishable: z.boolean(),
        verdict: z.enum(["better", "worse", "not distinguishable"]),
      }),
    ),
    unmatched_configurations: z.array(z.string()),
  })
  .meta({
    id: "BenchmarkComparison",
    ...EXTENSION,
    description: "Compares two benchmark runs of a suite over the tasks that both have.",
  });
