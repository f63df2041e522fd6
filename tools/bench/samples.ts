import { median as medianOf } from "@millwright/statistics";

/** A distribution of durations, in milliseconds. */
export type Summary = {
  readonly count: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
};

export function summarize(samples: readonly number[]): Summary {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (share: number): number =>
    round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN);
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}

/** Returns the median; NaN for no values. */
export const median = (values: readonly number[]): number => medianOf(Float64Array.from(values)) ?? Number.NaN;

/** Rounds to three significant digits; the noise of the measurements does not justify more. */
export const round = (value: number): number => (Number.isFinite(value) ? Number(value.toPrecision(3)) : value);
