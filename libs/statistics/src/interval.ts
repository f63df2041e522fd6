/** A closed interval; `low` is never above `high`. */
export type Interval = { readonly low: number; readonly high: number };

/** Two-sided quantiles of the standard normal distribution. */
const NORMAL_QUANTILES = { 0.9: 1.6448536269514722, 0.95: 1.959963984540054, 0.99: 2.5758293035489004 } as const;

/** The confidence levels that are supported. */
export type Confidence = keyof typeof NORMAL_QUANTILES;

export const DEFAULT_CONFIDENCE: Confidence = 0.95;

/** Returns the standard normal quantile that leaves (1 − confidence) / 2 above it. */
export const normalQuantile = (confidence: Confidence): number => NORMAL_QUANTILES[confidence];
