import type { JsonObject } from "@millwright/json";
import { coverageJson, differenceJson, rounded, scoringJson, seedOf } from "./benchmark-difference.ts";
import { metricArrays, type MetricRequest } from "./benchmark-metrics.ts";
import { narrative } from "./benchmark-narrative.ts";
import { baselineOf, type BenchmarkPlan, type PlanConfiguration, type PlanScorer } from "./benchmark-plan.ts";
import {
  correctnessTally,
  dollars,
  elapsedSeconds,
  hasTrials,
  NO_CREDITS,
  scoreProgress,
  seconds,
  trialProgress,
} from "./benchmark-progress.ts";
import { isFinished, type BenchmarkRun, type BenchmarkRunState } from "./benchmark-run.ts";
import {
  perFinishedTrial,
  scorersOf,
  select,
  sum,
  tally,
  trialCount,
  type BenchmarkStats,
  type TrialGroup,
} from "./benchmark-stats.ts";

export type ResultsInput = {
  readonly run: Pick<
    BenchmarkRun,
    | "uid"
    | "suiteName"
    | "state"
    | "repetitionCount"
    | "incompleteReason"
    | "manifestHash"
    | "startedAt"
    | "completedAt"
  >;
  readonly plan: BenchmarkPlan;
  /** Stats of the selected trials. */
  readonly stats: BenchmarkStats;
  readonly metrics: MetricRequest;
  readonly now: Date;
};

/**
 * Returns the public results of a benchmark run. Rates have Wilson intervals, differences to the baseline have a paired
 * bootstrap interval, and every average has its coverage: trials that failed for infrastructure reasons have no
 * outcome.
 */
export function benchmarkResults({ run, plan, stats, metrics, now }: ResultsInput): JsonObject {
  const configurations = plan.configurations.map((configuration) =>
    configurationJson(plan, stats, configuration, seedOf(run.manifestHash)),
  );
  const document: JsonObject = {
    benchmark_run_uid: run.uid,
    suite_name: run.suiteName,
    run_state: run.state,
    repetition_count: run.repetitionCount,
    manifest_hash: run.manifestHash,
    provisional: !isFinished(run.state),
    incomplete_reason: run.incompleteReason,
    trial_progress: trialProgress(stats.trials),
    score_progress: scoreProgress(stats.scores),
    trials_being_judged: sum(stats.trials, (g) => g.judging),
    trials_scoring_finished: sum(stats.trials, (g) => g.scoringFinished),
    infra_failed_trials: sum(stats.trials, (g) => g.infraFailed),
    run_metrics: runMetrics(stats, run, now),
    configurations,
    scorers: scorersOf(plan, stats).map((scorer) => scorerJson(plan, stats, scorer)),
    coverage: coverageJson(scorersOf(plan, stats).map(({ uid }) => tally(plan, stats, uid, {}))),
    ...metricArrays(plan, stats, metrics),
  };
  const summary_status = summaryStatus(run.state);
  return {
    ...document,
    summary_status,
    ...(summary_status === "available" && { summary_narrative: narrative(document) }),
  };
}

function summaryStatus(state: BenchmarkRunState): "available" | "unavailable" | "pending" {
  if (state === "completed") return "available";
  return isFinished(state) ? "unavailable" : "pending";
}

function runMetrics(stats: BenchmarkStats, run: ResultsInput["run"], now: Date): JsonObject {
  const exists = hasTrials(stats);
  const credits = exists ? NO_CREDITS : null;
  const [trials, scoring] = [sum(stats.trials, (g) => g.costMicros), sum(stats.scores, (g) => g.costMicros)];
  return {
    total_credits: credits,
    compute_credits: credits,
    platform_credits: credits,
    scoring_credits: credits,
    cost_usd: exists ? dollars(trials + scoring) : null,
    scoring_cost_usd: exists ? dollars(scoring) : null,
    elapsed_s: exists ? elapsedSeconds(run, now) : null,
  };
}

function configurationJson(
  plan: BenchmarkPlan,
  stats: BenchmarkStats,
  { uid, publicRecord }: PlanConfiguration,
  seed: number,
): JsonObject {
  const trials = select(stats.trials, { configurationUid: uid });
  const baseline = baselineOf(plan);
  return {
    ...publicRecord,
    retry_count: sum(trials, (g) => g.retries),
    retried_trial_count: sum(trials, (g) => g.retried),
    infra_failed_trials: sum(trials, (g) => g.infraFailed),
    metrics: configurationMetrics(trials),
    scoring: {
      ...scoringJson(correctnessTally(plan, stats, { configurationUid: uid })),
      difference_to_baseline:
        !baseline || baseline.uid === uid
          ? null
          : {
              baseline_configuration_uid: baseline.uid,
              ...differenceJson(pairedTasks(plan, stats.trials, baseline.uid, uid), seed),
            },
    },
    coverage: coverageJson(
      scorersOf(plan, stats).map((scorer) => tally(plan, stats, scorer.uid, { configurationUid: uid })),
    ),
  };
}

/** Returns the outcomes in the order of the manifest, so that the same seed draws the same pairs. */
function pairedTasks(plan: BenchmarkPlan, trials: readonly TrialGroup[], reference: string, candidate: string) {
  const outcomes = new Map(trials.map((group) => [`${group.configurationUid} ${group.taskUid}`, group.outcomes]));
  return plan.tasks.map(({ uid }) => ({
    reference: outcomes.get(`${reference} ${uid}`) ?? "",
    candidate: outcomes.get(`${candidate} ${uid}`) ?? "",
  }));
}

function configurationMetrics(trials: readonly TrialGroup[]): JsonObject {
  const [time, cost] = [sum(trials, (g) => g.wallTimeMs), sum(trials, (g) => g.costMicros)];
  const started = sum(trials, (g) => g.started) > 0;
  const [avgTime, avgCost] = [perFinishedTrial(trials, time), perFinishedTrial(trials, cost)];
  return {
    trial_count: trialCount(trials),
    total_credits: started ? NO_CREDITS : null,
    avg_total_credits_per_trial: started ? NO_CREDITS : null,
    wall_time_s_total: started ? seconds(time) : null,
    avg_wall_time_s: avgTime === null ? null : seconds(avgTime),
    dollars: started ? dollars(cost) : null,
    avg_dollars_per_trial: avgCost === null ? null : rounded(avgCost / 1e6),
    total_tokens: started ? sum(trials, (g) => g.totalTokens) : null,
  };
}

const scorerJson = (
  plan: BenchmarkPlan,
  stats: BenchmarkStats,
  { uid, id, name, kind, version, threshold }: PlanScorer,
): JsonObject => ({
  scorer_uid: uid,
  scorer_id: id,
  name,
  scorer_kind: kind,
  version,
  threshold,
  coverage: coverageJson([tally(plan, stats, uid, {})]),
  configurations: plan.configurations.map((configuration) => ({
    configuration_uid: configuration.uid,
    ...scoringJson(tally(plan, stats, uid, { configurationUid: configuration.uid })),
  })),
});
