import type { DateRange, Period } from "@millwright/periods";

/** Returns the starts of periods for `width_bucket`, which numbers the periods from 1. Without periods the whole range is one. */
export const periodStarts = (range: DateRange, periods: readonly Period[]): Date[] =>
  periods.length === 0 ? [range.start] : periods.map(({ from }) => from);
