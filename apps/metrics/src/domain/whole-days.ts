import type { DateRange } from "@millwright/periods";

const DAY_MS = 86_400_000;

/** `firstDay` (inclusive) and `lastDay` (exclusive) are UTC days, YYYY-MM-DD; there are none unless `firstDay` is before `lastDay`. */
export type SplitRange = {
  readonly firstDay: string;
  readonly lastDay: string;
  /** The partial days before and after the whole ones; either may be empty. */
  readonly head: DateRange;
  readonly tail: DateRange;
};

/** Splits a range into its whole UTC days, which daily sums cover, and the partial days at its ends, which they do not. */
export function splitWholeDays({ start, end }: DateRange): SplitRange {
  const first = Math.ceil(start.getTime() / DAY_MS) * DAY_MS;
  const last = Math.floor(end.getTime() / DAY_MS) * DAY_MS;
  const headEnd = new Date(Math.min(first, end.getTime()));
  const tailStart = new Date(Math.max(last, headEnd.getTime()));
  return { firstDay: dayOf(first), lastDay: dayOf(last), head: { start, end: headEnd }, tail: { start: tailStart, end } };
}

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);
