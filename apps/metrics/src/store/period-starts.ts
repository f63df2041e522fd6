import type { DateRange, Period } from "@millwright/periods";

/** Returns the starts of periods for `width_bucket`, which numbers what is at or after them from 1; without periods the whole range is one. */
export const periodStarts = (range: DateRange, periods: readonly Period[]): Date[] => (periods.length === 0 ? [range.start] : periods.map(({ from }) => from));
