import { DEFAULT_CONFIDENCE, normalQuantile, type Confidence, type Interval } from "./interval.ts";

/**
 * Returns the Wilson score interval of a proportion, without continuity correction; null for no trials.
 * Source: Wilson 1927; method 3 of Newcombe 1998, Statistics in Medicine 17:857–872.
 *
 * Throws RangeError unless 0 ≤ successes ≤ trials, both whole.
 */
export function wilson(
  successes: number,
  trials: number,
  confidence: Confidence = DEFAULT_CONFIDENCE,
): Interval | null {
  if (!Number.isSafeInteger(successes) || !Number.isSafeInteger(trials) || successes < 0 || successes > trials)
    throw new RangeError(`successes must be whole and between 0 and the trials (got ${successes} of ${trials})`);
  if (trials === 0) return null;
  const z = normalQuantile(confidence);
  const center = 2 * successes + z * z;
  const spread = z * Math.sqrt(z * z + (4 * successes * (trials - successes)) / trials);
  const scale = 2 * (trials + z * z);
  // The bounds of all failures and all successes are exact: rounding must not move them.
  return {
    low: successes === 0 ? 0 : (center - spread) / scale,
    high: successes === trials ? 1 : (center + spread) / scale,
  };
}
