import { invalidArgument } from "@millwright/errors";

export const PERIOD_UNITS = ["day", "week", "month"] as const;
export type PeriodUnit = (typeof PERIOD_UNITS)[number];
/** `label`: YYYY-MM-DD of the calendar start, UTC. `from` and `to`: the part of the period inside the range. */
export type Period = { readonly label: string; readonly from: Date; readonly to: Date };
export type DateRange = { readonly start: Date; readonly end: Date };

const DAY_MS = 86_400_000;
const PERIODS_MAX = 365;
const RANGE_DAYS = 30;
/** Earliest time of a range: PostgreSQL's dates have no year 0. */
const EARLIEST_MS = Date.parse("0001-01-01T00:00:00Z");

/**
 * Returns [start, end) with defaults: until now, from 30 days before the end, but not before year 1. Errors:
 * date_range_invalid.
 */
export function resolveRange(
  given: { readonly start?: Date | undefined; readonly end?: Date | undefined },
  now: Date,
): DateRange {
  const end = given.end ?? now;
  const start = given.start ?? new Date(Math.max(end.getTime() - RANGE_DAYS * DAY_MS, EARLIEST_MS));
  if (start < end) return { start, end };
  throw invalidArgument(
    "date_range_invalid",
    `start_date (${start.toISOString()}) must be before end_date (${end.toISOString()}).`,
  );
}

/** Returns the calendar periods that a range touches, UTC; weeks start on Sunday. Errors: too_many_periods. */
export function periodsOf({ start, end }: DateRange, unit: PeriodUnit): Period[] {
  const periods: Period[] = [];
  for (let calendar = calendarStart(start, unit); calendar < end; calendar = nextStart(calendar, unit)) {
    if (periods.length === PERIODS_MAX)
      throw invalidArgument(
        "too_many_periods",
        `The range touches more than ${PERIODS_MAX} periods of a ${unit}; use a shorter range or longer periods.`,
      );
    const next = nextStart(calendar, unit);
    periods.push({
      label: calendar.toISOString().slice(0, 10),
      from: calendar < start ? start : calendar,
      to: next > end ? end : next,
    });
  }
  return periods;
}

/** Returns the calendar period that contains a time, [start, end), UTC; weeks start on Sunday. */
export function calendarPeriod(at: Date, unit: PeriodUnit): DateRange {
  const start = calendarStart(at, unit);
  return { start, end: nextStart(start, unit) };
}

function calendarStart(at: Date, unit: PeriodUnit): Date {
  const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()];
  if (unit === "month") return utcDate(year, month, 1);
  return utcDate(year, month, unit === "week" ? day - at.getUTCDay() : day);
}

function nextStart(calendar: Date, unit: PeriodUnit): Date {
  if (unit === "month") return utcDate(calendar.getUTCFullYear(), calendar.getUTCMonth() + 1, 1);
  return new Date(calendar.getTime() + (unit === "week" ? 7 : 1) * DAY_MS);
}

/** Returns the beginning of a day. `Date.UTC` would take the years 1 to 99 for 1901 to 1999. */
const utcDate = (year: number, month: number, day: number): Date =>
  new Date(new Date(0).setUTCFullYear(year, month, day));
