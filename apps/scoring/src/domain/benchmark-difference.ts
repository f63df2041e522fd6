import type { JsonObject } from "@millwright/json";
import { isDistinguishable, pairedBootstrap, wilson, type Confidence, type Interval } from "@millwright/statistics";
import type { Tally } from "./benchmark-stats.ts";

/** Correctness outcomes of one task under one configuration, one character per repetition; see `TrialGroup`. */
export type PairedOutcomes = { readonly reference: string; readonly candidate: string };

/**
 * Returns the seed of all resampling of a benchmark run. The same manifest gives the same intervals on every
 * installation.
 */
export const seedOf = (manifestHash: string): number => Number.parseInt(manifestHash.slice(0, 8), 16);

/** Rounds a number between 0 and 1 to 6 decimals, which removes the digits that binary fractions add. */
export const rounded = (value: number): number => Math.round(value * 1e6) / 1e6;

const orNull = (value: number | null): number | null => (value === null ? null : rounded(value));

/** Returns counts and rates of a tally, with its coverage and the Wilson interval of its pass rate. */
export function scoringJson(tally: Tally): JsonObject {
  const { passed, failed, avgScore, received } = tally;
  return {
    pass_count: passed,
    fail_count: failed,
    pass_rate: orNull(received === 0 ? null : passed / received),
    avg_score: orNull(avgScore),
    interval: intervalJson(wilson(passed, received), "wilson", 0.95),
    coverage: coverageJson([tally]),
  };
}

/** Returns the expected and the received number of outcomes, and their ratio. */
export function coverageJson(tallies: readonly Tally[]): JsonObject {
  const [expected, received] = [
    tallies.reduce((total, each) => total + each.expected, 0),
    tallies.reduce((total, each) => total + each.received, 0),
  ];
  return { expected, received, rate: expected === 0 ? null : rounded(received / expected) };
}

/**
 * Returns the difference of the pass rates (candidate − reference) over the trials that both sides have, and whether
 * the difference is distinguishable from zero.
 */
export function differenceJson(tasks: readonly PairedOutcomes[], seed: number): JsonObject {
  const result = pairedBootstrap(tasks.flatMap(pairsOf), { seed });
  const distinguishable = isDistinguishable(result);
  return {
    difference: orNull(result.difference),
    interval: intervalJson(result.interval, "paired_bootstrap", result.confidence),
    pairs: result.pairs,
    incomplete_pairs: result.incompletePairs,
    differing_pairs: result.differingPairs,
    seed,
    resamples: result.resamples,
    distinguishable,
    verdict: distinguishable ? (result.difference! > 0 ? "better" : "worse") : "not distinguishable",
  };
}

const intervalJson = (interval: Interval | null, method: string, confidence: Confidence): JsonObject | null =>
  interval && { low: rounded(interval.low), high: rounded(interval.high), confidence, method };

const pairsOf = ({ reference, candidate }: PairedOutcomes) =>
  Array.from({ length: Math.max(reference.length, candidate.length) }, (_, i) => ({
    baseline: valueOf(reference[i]),
    candidate: valueOf(candidate[i]),
  }));

const valueOf = (outcome: string | undefined): number | null => (outcome === "1" ? 1 : outcome === "0" ? 0 : null);
