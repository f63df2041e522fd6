export const PERIODS = ["day", "week", "month"] as const;

/** The range and the periods of charts, as in the URL. */
export type RangeSearch = {
  /** Inclusive, UTC. Default: 30 days before the end. */
  readonly from?: string | undefined;
  /** Exclusive, UTC. Default: now. */
  readonly before?: string | undefined;
  /** Default: a day. */
  readonly period?: (typeof PERIODS)[number] | undefined;
};

const PERCENT = 100;
const MINUTE_S = 60;
const HOUR_S = 60 * MINUTE_S;
const DAY_S = 24 * HOUR_S;
/** Units of durations, with the number of seconds from which they are used. */
const UNITS = [
  { unit: "d", size: DAY_S, from: 2 * DAY_S },
  { unit: "h", size: HOUR_S, from: HOUR_S },
  { unit: "m", size: MINUTE_S, from: MINUTE_S },
];

/** How long data of the charts is current. The API permits 60 reads a minute. */
export const FRESH_MS = 60_000;

/** Returns the labels of periods: their first days, in UTC. */
export const periodLabels = (periods: readonly string[] = []): string[] => periods.map((start) => start.slice(0, 10));

export const percent = (rate: number): string => `${Number((rate * PERCENT).toFixed(1))}%`;

/** Returns a difference of rates in percentage points: "+12.5 points". */
export const points = (difference: number): string =>
  `${difference > 0 ? "+" : ""}${Number((difference * PERCENT).toFixed(1))} points`;

/** Returns a number of seconds in its largest unit: "1.5h". */
export function duration(seconds: number): string {
  const { unit, size } = UNITS.find(({ from }) => seconds >= from) ?? { unit: "s", size: 1 };
  return `${Number((seconds / size).toFixed(1))}${unit}`;
}

/** Returns a value of the range, or a dash if there is no data, which is not 0. */
export const orDash = (value: number | null, format: (value: number) => string): string =>
  value === null ? "–" : format(value);

const DAY_MS = DAY_S * 1000;
const WEEK_DAYS = 7;
const DEFAULT_DAYS = 30;
const dateOf = (instant: number): string => new Date(instant).toISOString().slice(0, 10);

/** Returns the ranges that a page offers at an instant. Weeks begin on Sunday in UTC, as those of the API. */
export function rangesAt(now: number) {
  const sunday = now - new Date(now).getUTCDay() * DAY_MS;
  const presets: readonly (Pick<RangeSearch, "from" | "before"> & { readonly label: string })[] = [
    { label: "Last 30 days" },
    { label: "This week", from: dateOf(sunday) },
    { label: "Last week", from: dateOf(sunday - WEEK_DAYS * DAY_MS), before: dateOf(sunday) },
  ];
  /** Returns the range that the API applies, with its last day. */
  const rangeText = ({ from, before }: RangeSearch): string => {
    const end = before === undefined ? now : Date.parse(before);
    if (Number.isNaN(end)) return "";
    const start = from?.slice(0, 10) ?? dateOf(end - DEFAULT_DAYS * DAY_MS);
    return `${start} to ${before === undefined ? "now" : `the end of ${dateOf(end - 1)}`}, UTC`;
  };
  return { presets, rangeText };
}
