import { invalidArgument, type DomainError } from "@millwright/errors";

/**
 * `schedule`: five fields, names, no macros (scheduled agents). `trigger`: also `@hourly`, `@daily`, `@midnight`,
 * `@weekly`, `@monthly`, `@yearly`, `@annually` and `@every 1h30m` (scheduled triggers of automations).
 */
export type CronDialect = "schedule" | "trigger";

/** When it is due: by the calendar, or at multiples of a period since the epoch. */
export type Cron = CalendarCron | { readonly kind: "every"; readonly everyMs: number };

export type CalendarCron = {
  readonly kind: "calendar";
  /** Ascending. */
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly days: ReadonlySet<number>;
  readonly months: ReadonlySet<number>;
  /** 0 = Sunday. */
  readonly weekdays: ReadonlySet<number>;
  /** The hour field is `*`: the expression follows elapsed time, not the wall clock. */
  readonly isEveryHour: boolean;
  /** Day of month and day of week are both restricted: either matches. */
  readonly isEitherDay: boolean;
};

const MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

type Field = { readonly name: string; readonly min: number; readonly max: number; readonly names?: readonly string[] };
const MINUTE: Field = { name: "minute", min: 0, max: 59 };
const HOUR: Field = { name: "hour", min: 0, max: 23 };
const DAY: Field = { name: "day of month", min: 1, max: 31 };
const MONTH: Field = { name: "month", min: 1, max: 12, names: MONTHS };
/** 7 is Sunday, too. */
const WEEKDAY: Field = { name: "day of week", min: 0, max: 7, names: WEEKDAYS };

const MACROS: Readonly<Record<string, string>> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
};

const TEXT_MAX = 200;
const MINUTE_MS = 60_000;
const EVERY_MAX_MS = 366 * 24 * 60 * MINUTE_MS;
/** The maximum number of days of a month. */
const MONTH_DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/**
 * Parses an expression: minute, hour, day of month, month, day of week; each `*`, values, ranges and lists, with steps
 * on `*` and on ranges. Months and days of the week have names, in any case; Sunday is 0 or 7.
 *
 * Errors: cron_invalid (invalid_argument) with the fault; also for an expression that is never due (30 February).
 */
export function parseCron(text: string, dialect: CronDialect): Cron {
  const key = `${dialect} ${text}`;
  const cron = known.get(key) ?? readCron(text, dialect);
  if (known.size >= KNOWN_MAX) known.clear();
  known.set(key, cron);
  return cron;
}

/** Cached, because many schedules share an expression. */
const known = new Map<string, Cron>();
const KNOWN_MAX = 1_000;

function readCron(text: string, dialect: CronDialect): Cron {
  if (text.length > TEXT_MAX) throw wrong(`An expression has at most ${TEXT_MAX} characters (got ${text.length}).`);
  const trimmed = text.trim();
  if (!trimmed.startsWith("@")) return calendar(trimmed);
  if (dialect === "schedule") throw wrong("Macros such as @daily are not supported here. Write the five fields.");
  const macro = MACROS[trimmed.toLowerCase()];
  if (macro !== undefined) return calendar(macro);
  const every = /^@every\s+(\S+)$/i.exec(trimmed)?.[1];
  if (every === undefined) throw wrong(`${trimmed} is not a known macro.`);
  return { kind: "every", everyMs: durationMs(every) };
}

function calendar(text: string): CalendarCron {
  const fields = text.split(/\s+/);
  if (fields.length !== 5 || text === "")
    throw wrong(
      `An expression has five fields: minute, hour, day of month, month, day of week (got ${text === "" ? 0 : fields.length}).`,
    );
  const [minute, hour, day, month, weekday] = fields as [string, string, string, string, string];
  const cron: CalendarCron = {
    kind: "calendar",
    minutes: valuesOf(minute, MINUTE),
    hours: valuesOf(hour, HOUR),
    days: new Set(valuesOf(day, DAY)),
    months: new Set(valuesOf(month, MONTH)),
    weekdays: new Set(valuesOf(weekday, WEEKDAY).map((value) => value % 7)),
    isEveryHour: hour === "*",
    isEitherDay: day !== "*" && weekday !== "*",
  };
  const comesDue =
    weekday !== "*" || [...cron.months].some((selected) => Math.min(...cron.days) <= MONTH_DAYS[selected - 1]!);
  if (!comesDue) throw wrong("The expression never matches: no selected month has the selected day.");
  return cron;
}

function valuesOf(text: string, field: Field): number[] {
  const values = new Set<number>();
  for (const part of text.split(",")) for (const value of partOf(part, field)) values.add(value);
  return [...values].toSorted((a, b) => a - b);
}

function partOf(part: string, field: Field): number[] {
  const [range = "", stepText, ...rest] = part.split("/");
  const [fromText = "", toText, ...more] = range.split("-");
  if (rest.length > 0 || more.length > 0)
    throw wrong(`"${part}" is not a value, range or step of the field ${field.name}.`);
  if (stepText !== undefined && range !== "*" && toText === undefined)
    throw wrong(`A step needs * or a range before it, in the field ${field.name}: "${part}".`);
  // Sunday is both 0 and 7: `*` covers 0 to 6.
  const last = field === WEEKDAY ? 6 : field.max;
  const from = range === "*" ? field.min : valueOf(fromText, field);
  const named = toText === undefined ? (range === "*" ? last : from) : valueOf(toText, field);
  const to = field === WEEKDAY && named < from && named === 0 ? 7 : named;
  if (to < from) throw wrong(`The range "${range}" of the field ${field.name} ends before it begins.`);
  const step = stepText === undefined ? 1 : stepOf(stepText, field);
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_one, index) => from + index * step);
}

function valueOf(text: string, field: Field): number {
  const named = field.names?.indexOf(text.toUpperCase()) ?? -1;
  if (named >= 0) return named + field.min;
  const value = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= field.min && value <= field.max))
    throw wrong(
      `The field ${field.name} takes ${field.min} to ${field.max}${field.names ? " and names" : ""}, not "${text}".`,
    );
  return value;
}

function stepOf(text: string, field: Field): number {
  const step = /^\d{1,2}$/.test(text) ? Number(text) : 0;
  if (step < 1 || step > field.max)
    throw wrong(`A step of the field ${field.name} is a number from 1 to ${field.max}, not "${text}".`);
  return step;
}

const UNITS: Readonly<Record<string, number>> = { h: 60 * MINUTE_MS, m: MINUTE_MS, s: 1_000 };

/** `1h30m`: hours, minutes, seconds. */
function durationMs(text: string): number {
  const parts = [...text.matchAll(/(\d{1,6})([hms])/g)];
  const ms = parts.reduce((sum, [, count, unit]) => sum + Number(count) * UNITS[unit!]!, 0);
  if (parts.map(([whole]) => whole).join("") !== text || ms < MINUTE_MS || ms > EVERY_MAX_MS) {
    throw wrong(`@every takes a duration such as 90m or 1h30m, from a minute to 366 days, not "${text}".`);
  }
  return ms;
}

const wrong = (message: string): DomainError => invalidArgument("cron_invalid", message, { field: "cron_schedule" });
