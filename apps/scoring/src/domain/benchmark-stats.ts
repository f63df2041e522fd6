import type { BenchmarkPlan } from "./benchmark-plan.ts";
import type { ScoreState, TrialState } from "./benchmark-run.ts";

/** Statistics of the trials of one configuration and task. */
export type TrialGroup = Readonly<Record<TrialState, number>> & {
  readonly configurationUid: string;
  readonly taskUid: string;
  /** Number of trials that were dispatched at least once. */
  readonly started: number;
  /** Number of cancelled trials that were never dispatched. */
  readonly skipped: number;
  /** Number of failed trials whose last attempt failed for infrastructure reasons. */
  readonly infraFailed: number;
  /** Number of retries, and number of trials with at least one retry. */
  readonly retries: number;
  readonly retried: number;
  readonly costMicros: number;
  readonly totalTokens: number;
  readonly wallTimeMs: number;
  /**
   * Number of succeeded trials with a score that is pending or being judged, and number of those whose scores are all
   * terminal.
   */
  readonly judging: number;
  readonly scoringFinished: number;
  /** Correctness by repetition: `1` passed, `0` failed, `-` no outcome. Trials that the agent failed count as `0`. */
  readonly outcomes: string;
};

/** Number of scores of one configuration, task and scorer, by state of the ledger. */
export type ScoreGroup = Readonly<Record<ScoreState, number>> & {
  readonly configurationUid: string;
  readonly taskUid: string;
  readonly scorerUid: string;
  readonly passed: number;
  readonly scoreSum: number;
  readonly costMicros: number;
};

/** The input of the results of a benchmark run. */
export type BenchmarkStats = {
  readonly trials: readonly TrialGroup[];
  readonly scores: readonly ScoreGroup[];
  /** Scorers of the run that have not been deleted. */
  readonly scorerUids: readonly string[];
};

/** Selects groups. An absent member selects all groups. */
export type Selection = { readonly configurationUid?: string };

/**
 * Outcomes of one scorer: `expected` is the number of trials that should have an outcome, `received` the number that
 * have one.
 */
export type Tally = {
  readonly passed: number;
  readonly failed: number;
  readonly avgScore: number | null;
  readonly expected: number;
  readonly received: number;
};

export const select = <G extends { configurationUid: string }>(
  groups: readonly G[],
  { configurationUid }: Selection,
): readonly G[] =>
  configurationUid === undefined ? groups : groups.filter((group) => group.configurationUid === configurationUid);

export const sum = <G>(groups: readonly G[], figure: (group: G) => number): number =>
  groups.reduce((total, group) => total + figure(group), 0);

export const trialCount = (groups: readonly TrialGroup[]): number =>
  sum(groups, (g) => g.pending + g.running + g.succeeded + g.failed + g.cancelled);

/** Returns the scorers of the plan that still exist. */
export const scorersOf = (plan: BenchmarkPlan, stats: BenchmarkStats) =>
  plan.scorers.filter(({ uid }) => stats.scorerUids.includes(uid));

/**
 * Counts the outcomes of a scorer. Every selected trial is expected to have an outcome, so that trials without one
 * lower the coverage, except trials that were cancelled before they were dispatched.
 * For correctness, a trial that the agent failed counts as failed with score 0. A trial that failed for infrastructure
 * reasons has no outcome.
 */
export function tally(plan: BenchmarkPlan, stats: BenchmarkStats, scorerUid: string, selection: Selection): Tally {
  const trials = select(stats.trials, selection);
  const scores = select(stats.scores, selection).filter((group) => group.scorerUid === scorerUid);
  const isCorrectness = scorerUid === plan.correctness?.uid;
  const passed = isCorrectness ? sum(trials, (g) => count(g.outcomes, "1")) : sum(scores, (g) => g.passed);
  const failed = isCorrectness ? sum(trials, (g) => count(g.outcomes, "0")) : sum(scores, (g) => g.scored - g.passed);
  const received = passed + failed;
  const avgScore = received === 0 ? null : sum(scores, (g) => g.scoreSum) / received;
  const expected = trialCount(trials) - sum(trials, (g) => g.skipped);
  return { passed, failed, avgScore, expected, received };
}

const count = (outcomes: string, outcome: string): number => outcomes.split(outcome).length - 1;

/**
 * Returns the mean cost or time per finished trial: null if no trial was dispatched, 0 if none has finished. Trials that
 * ended without being dispatched have no cost or time and are not counted.
 */
export function perFinishedTrial(trials: readonly TrialGroup[], total: number): number | null {
  if (sum(trials, (g) => g.started) === 0) return null;
  const finished = sum(trials, (g) => g.started - g.running);
  return finished === 0 ? 0 : total / finished;
}
