import type { BenchmarkPlan } from "./benchmark-plan.ts";
import type { ScoreState, TrialState } from "./benchmark-run.ts";

/** The trials of one configuration and task. */
export type TrialGroup = Readonly<Record<TrialState, number>> & {
  readonly configurationUid: string;
  readonly taskUid: string;
  /** Trials that were dispatched at least once. */
  readonly started: number;
  /** Failed trials whose last attempt the platform failed, not the agent. */
  readonly infraFailed: number;
  /** Further attempts, and trials that have any. */
  readonly retries: number;
  readonly retried: number;
  readonly costMicros: number;
  readonly totalTokens: number;
  readonly wallTimeMs: number;
  /** Succeeded trials with a score that is pending or being judged, and those whose scores are all terminal. */
  readonly judging: number;
  readonly scoringFinished: number;
  /** Correctness by repetition: `1` passed, `0` failed, `-` no outcome. Trials that the agent failed have failed. */
  readonly outcomes: string;
};

/** The scores of one configuration, task and scorer, by state of the ledger. */
export type ScoreGroup = Readonly<Record<ScoreState, number>> & {
  readonly configurationUid: string;
  readonly taskUid: string;
  readonly scorerUid: string;
  readonly passed: number;
  readonly scoreSum: number;
  readonly costMicros: number;
};

/** All that the results of a benchmark run are computed from. */
export type BenchmarkStats = {
  readonly trials: readonly TrialGroup[];
  readonly scores: readonly ScoreGroup[];
  /** Scorers of the run that were not deleted since. */
  readonly scorerUids: readonly string[];
};

/** Which groups count; an absent member selects all. */
export type Selection = { readonly configurationUid?: string };

/** Outcomes of one scorer. `expected` trials should have one, `received` have one. */
export type Tally = {
  readonly passed: number;
  readonly failed: number;
  readonly avgScore: number | null;
  readonly expected: number;
  readonly received: number;
};

/** Returns the groups of a selection. */
export const select = <G extends { configurationUid: string }>(
  groups: readonly G[],
  { configurationUid }: Selection,
): readonly G[] =>
  configurationUid === undefined ? groups : groups.filter((group) => group.configurationUid === configurationUid);

/** Returns the sum of a figure of groups. */
export const sum = <G>(groups: readonly G[], figure: (group: G) => number): number =>
  groups.reduce((total, group) => total + figure(group), 0);

/** Returns the number of trials of groups. */
export const trialCount = (groups: readonly TrialGroup[]): number =>
  sum(groups, (g) => g.pending + g.running + g.succeeded + g.failed + g.cancelled);

/** Returns the scorers of the plan that still exist. */
export const scorersOf = (plan: BenchmarkPlan, stats: BenchmarkStats) =>
  plan.scorers.filter(({ uid }) => stats.scorerUids.includes(uid));

/**
 * Counts the outcomes of a scorer. Every selected trial is expected to have one, so that trials without one lower the coverage and are not hidden.
 * For correctness, a trial that the agent failed counts as a failure with score 0; one that the infrastructure failed has no outcome.
 */
export function tally(plan: BenchmarkPlan, stats: BenchmarkStats, scorerUid: string, selection: Selection): Tally {
  const trials = select(stats.trials, selection);
  const scores = select(stats.scores, selection).filter((group) => group.scorerUid === scorerUid);
  const isCorrectness = scorerUid === plan.correctness?.uid;
  const passed = isCorrectness ? sum(trials, (g) => count(g.outcomes, "1")) : sum(scores, (g) => g.passed);
  const failed = isCorrectness ? sum(trials, (g) => count(g.outcomes, "0")) : sum(scores, (g) => g.scored - g.passed);
  const received = passed + failed;
  const avgScore = received === 0 ? null : sum(scores, (g) => g.scoreSum) / received;
  return { passed, failed, avgScore, expected: trialCount(trials), received };
}

const count = (outcomes: string, outcome: string): number => outcomes.split(outcome).length - 1;

/** Returns the mean cost or time per trial: null while none was dispatched, 0 while none has finished. */
export function perFinishedTrial(trials: readonly TrialGroup[], total: number): number | null {
  if (sum(trials, (g) => g.started) === 0) return null;
  const finished = sum(trials, (g) => g.succeeded + g.failed + g.cancelled);
  return finished === 0 ? 0 : total / finished;
}
