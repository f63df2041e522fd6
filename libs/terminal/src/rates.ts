/** Returns a share as percent with one decimal; "-" without one. */
export const percent = (share: number | null): string => (share === null ? "-" : `${(share * 100).toFixed(1)} %`);

/** Returns a difference of shares in percentage points, with its sign. */
export const points = (difference: number | null): string =>
  difference === null ? "-" : `${difference > 0 ? "+" : ""}${(difference * 100).toFixed(1)}`;

/** Returns an interval of shares or differences; "-" without one. */
export const range = (interval: { low: number; high: number } | null, show: (value: number) => string): string =>
  interval === null ? "-" : `${show(interval.low)} to ${show(interval.high)}`;
