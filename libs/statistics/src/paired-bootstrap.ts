import { DEFAULT_CONFIDENCE, type Confidence, type Interval } from "./interval.ts";
import { mean } from "./mean.ts";
import { seededIndex } from "./random.ts";

/** One observation of both sides; null: the side has none. */
export type Pair = { readonly baseline: number | null; readonly candidate: number | null };

export type BootstrapOptions = { readonly seed: number; readonly resamples?: number; readonly confidence?: Confidence };

export type PairedDifference = {
  /** Mean of candidate − baseline over the complete pairs; null without one. */
  readonly difference: number | null;
  /** Percentile interval of the difference; null below two complete pairs. */
  readonly interval: Interval | null;
  /** Complete pairs, and pairs that lack a side. */
  readonly pairs: number;
  readonly incompletePairs: number;
  /** Complete pairs whose sides differ. */
  readonly differingPairs: number;
  readonly seed: number;
  readonly resamples: number;
  readonly confidence: Confidence;
};

const RESAMPLES_MIN = 1_000;
const RESAMPLES_MAX = 2_000;
/** Limits the time of a bootstrap of many pairs, which needs fewer resamples. */
const DRAWS_MAX = 250_000;

/**
 * Returns the mean difference of paired observations with a percentile bootstrap interval: pairs are drawn with
 * replacement. The same pairs in the same order with the same seed give the same interval on every platform. Source:
 * Efron and Tibshirani 1993, An Introduction to the Bootstrap, §13.3.
 */
export function pairedBootstrap(pairs: readonly Pair[], options: BootstrapOptions): PairedDifference {
  const differences = pairs.flatMap(({ baseline, candidate }) =>
    baseline === null || candidate === null ? [] : [candidate - baseline],
  );
  const { seed, confidence = DEFAULT_CONFIDENCE } = options;
  const resamples = options.resamples ?? resamplesOf(differences.length);
  return {
    difference: mean(differences),
    interval: differences.length < 2 ? null : middle(resampledMeans(differences, seed, resamples), confidence),
    pairs: differences.length,
    incompletePairs: pairs.length - differences.length,
    differingPairs: differences.filter((difference) => difference !== 0).length,
    seed,
    resamples,
    confidence,
  };
}

/**
 * Returns whether the data shows a difference: 0 is outside the interval, and enough pairs differ. A bootstrap of few
 * pairs, or of pairs that all differ equally, is too narrow; below this number not even a sign test of pairs that all
 * agree rejects equality.
 */
export function isDistinguishable({ interval, differingPairs, confidence }: PairedDifference): boolean {
  const isZeroOutside = interval !== null && (interval.low > 0 || interval.high < 0);
  return isZeroOutside && 2 * 0.5 ** differingPairs <= 1 - confidence;
}

/** Returns the means of the resamples in ascending order. */
export function resampledMeans(values: readonly number[], seed: number, resamples: number): Float64Array {
  const drawIndex = seededIndex(seed);
  const source = Float64Array.from(values);
  const means = new Float64Array(resamples);
  for (let i = 0; i < resamples; i++) {
    let sum = 0;
    for (let j = 0; j < source.length; j++) sum += source[drawIndex(source.length)]!;
    means[i] = sum / source.length;
  }
  return means.sort();
}

const resamplesOf = (pairs: number): number =>
  Math.min(RESAMPLES_MAX, Math.max(RESAMPLES_MIN, Math.floor(DRAWS_MAX / Math.max(pairs, 1))));

/** The central part of ascending values; both ends are values that occur. */
function middle(ascending: Float64Array, confidence: Confidence): Interval {
  const outside = Math.floor((ascending.length * (1 - confidence)) / 2 + 1e-9);
  return { low: ascending[outside]!, high: ascending[ascending.length - 1 - outside]! };
}
