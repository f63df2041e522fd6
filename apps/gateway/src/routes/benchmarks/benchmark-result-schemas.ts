import { z } from "zod";
import { EXTENSION } from "../../rest/index.ts";
import { Configuration } from "./benchmark-schemas.ts";
import { BenchmarkRunState, ScoreProgress, TrialProgress } from "./benchmark-state-schemas.ts";

const Interval = z.looseObject({ low: z.number(), high: z.number(), confidence: z.number(), method: z.string() }).meta({
  id: "ConfidenceInterval",
  ...EXTENSION,
  description: "The Wilson interval of a pass rate, or the paired-bootstrap interval of a difference.",
});

const Coverage = z
  .looseObject({ expected: z.int(), received: z.int(), rate: z.number().nullable() })
  .meta({ id: "BenchmarkCoverage", description: "Number of expected and received scores of a rate." });

/** The difference of two pass rates over the trials that both sides have. Millwright extension. */
export const Difference = z
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

export const Scoring = z
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
