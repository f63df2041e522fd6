import type { DateRange, Period } from "@millwright/periods";

/** A factory's facts in a range, cut where its periods begin; without periods it is one piece. */
export type PeriodWindow = { readonly factoryUid: string; readonly range: DateRange; readonly starts: readonly Date[] };

/** Returns the window of a range. */
export const periodWindow = (factoryUid: string, range: DateRange, periods: readonly Period[]): PeriodWindow => ({
  factoryUid,
  range,
  starts: periods.length === 0 ? [range.start] : periods.map(({ from }) => from),
});

/**
 * Whole UTC days of a range, [start, end), and the partial days before and after them; any of the three may be empty.
 */
export type DaySplit = { readonly before: DateRange; readonly days: DateRange; readonly after: DateRange };

const DAY_MS = 86_400_000;

/** Returns the whole UTC days of a range and what is left of it. */
export function splitDays({ start, end }: DateRange): DaySplit {
  const firstMidnight = Math.ceil(start.getTime() / DAY_MS) * DAY_MS;
  const lastMidnight = Math.floor(end.getTime() / DAY_MS) * DAY_MS;
  if (firstMidnight > lastMidnight)
    return { before: { start, end }, days: { start: end, end }, after: { start: end, end } };
  const days = { start: new Date(firstMidnight), end: new Date(lastMidnight) };
  return { before: { start, end: days.start }, days, after: { start: days.end, end } };
}

/** Returns the part of the range that each period covers. */
export const boundsOf = ({ range, starts }: Pick<PeriodWindow, "range" | "starts">): DateRange[] =>
  starts.map((start, index) => ({ start, end: starts[index + 1] ?? range.end }));

/** Returns the starts and the ends of ranges, as a statement takes them. */
export const columnsOf = (ranges: readonly DateRange[]): [Date[], Date[]] => [
  ranges.map(({ start }) => start),
  ranges.map(({ end }) => end),
];
