import type { JsonObject } from "@millwright/json";
import { toDollars } from "@millwright/money";
import { rounded } from "./benchmark-difference.ts";
import type { BenchmarkPlan, PlanConfiguration } from "./benchmark-plan.ts";
import type { BenchmarkRun } from "./benchmark-run.ts";
import {
  perFinishedTrial,
  scorersOf,
  select,
  sum,
  tally,
  trialCount,
  type BenchmarkStats,
  type ScoreGroup,
  type Selection,
  type TrialGroup,
} from "./benchmark-stats.ts";

/** Credits as a decimal string. The platform charges no credits, so the sum is 0 once trials exist. */
export const NO_CREDITS = "0";

/** Returns whether any trial was dispatched. Before that, the figures of a benchmark run are null. */
export const hasTrials = ({ trials }: BenchmarkStats): boolean => sum(trials, (g) => g.started) > 0;

/** Converts micro-dollars to dollars of a public record. */
export const dollars = (micros: number): number => toDollars(BigInt(micros));

/** Converts milliseconds to seconds. */
export const seconds = (ms: number): number => rounded(ms / 1000);

/** Returns the duration of a benchmark run so far, or null before it starts. */
export const elapsedSeconds = (
  { startedAt, completedAt }: Pick<BenchmarkRun, "startedAt" | "completedAt">,
  now: Date,
): number | null => (startedAt === null ? null : seconds((completedAt ?? now).getTime() - startedAt.getTime()));

export function trialProgress(trials: readonly TrialGroup[]): JsonObject {
  const count = (state: "pending" | "running" | "succeeded" | "failed" | "cancelled"): number =>
    sum(trials, (g) => g[state]);
  const [succeeded, failed, cancelled] = [count("succeeded"), count("failed"), count("cancelled")];
  return {
    total: trialCount(trials),
    pending: count("pending"),
    running: count("running"),
    succeeded,
    failed,
    cancelled,
    completed: succeeded + failed + cancelled,
  };
}

/** Counts the scores of the ledger by state. Scores whose trial has not ended or did not succeed are not expected. */
export function scoreProgress(scores: readonly ScoreGroup[]): JsonObject {
  const counts = {
    awaiting_trial: sum(scores, (g) => g.awaiting_trial),
    pending: sum(scores, (g) => g.pending),
    judging: sum(scores, (g) => g.judging),
    scored: sum(scores, (g) => g.scored),
    finished_unscored: sum(scores, (g) => g.finished_unscored),
    not_scoreable: sum(scores, (g) => g.not_scoreable),
  };
  return {
    ...counts,
    received: counts.scored,
    expected: counts.pending + counts.judging + counts.scored + counts.finished_unscored,
  };
}

/**
 * Returns the members of a benchmark run's record that depend on its trials: progress, costs and the stats of each
 * configuration.
 * Figures are null before the first trial is dispatched.
 */
export function benchmarkProgress(
  plan: BenchmarkPlan,
  stats: BenchmarkStats,
  run: Pick<BenchmarkRun, "startedAt" | "completedAt">,
  now: Date,
): JsonObject {
  const exists = hasTrials(stats);
  const ifExists = <T>(value: T): T | null => (exists ? value : null);
  const cost = sum(stats.trials, (g) => g.costMicros) + sum(stats.scores, (g) => g.costMicros);
  return {
    elapsed_s: ifExists(elapsedSeconds(run, now)),
    trial_count: ifExists(trialCount(stats.trials)),
    task_count: ifExists(plan.tasks.length),
    scorer_count: ifExists(scorersOf(plan, stats).length),
    total_credits: ifExists(NO_CREDITS),
    cost_usd: ifExists(dollars(cost)),
    trial_progress: trialProgress(stats.trials),
    score_progress: scoreProgress(stats.scores),
    configuration_stats: ifExists(
      plan.configurations.map((configuration) => configurationStats(plan, stats, configuration)),
    ),
  };
}

function configurationStats(
  plan: BenchmarkPlan,
  stats: BenchmarkStats,
  { uid, publicRecord }: PlanConfiguration,
): JsonObject {
  const { agent_configs: _overrides, harness_auth_secret_name: _secret, ...record } = publicRecord;
  const trials = select(stats.trials, { configurationUid: uid });
  const { passed, failed, received } = correctnessTally(plan, stats, { configurationUid: uid });
  const started = sum(trials, (g) => g.started) > 0;
  const time = perFinishedTrial(
    trials,
    sum(trials, (g) => g.wallTimeMs),
  );
  return {
    ...record,
    trial_count: trialCount(trials),
    pass_count: passed,
    fail_count: failed,
    pass_rate: received === 0 ? null : rounded(passed / received),
    avg_total_credits_per_trial: started ? NO_CREDITS : null,
    avg_wall_time_s: time === null ? null : seconds(time),
  };
}

/** Counts the trials that passed and failed. */
export const correctnessTally = (plan: BenchmarkPlan, stats: BenchmarkStats, selection: Selection) =>
  tally(plan, stats, plan.correctness?.uid ?? "", selection);
