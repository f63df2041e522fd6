import { CHOICES } from "./choices.ts";
import { textOption, UsageError, type Cli, type Values } from "./command.ts";
import { FACTORY, factoryPath } from "./which-factory.ts";

/** The range of a response with metrics or costs. */
export type Ranged = {
  as_of: string;
  start_date: string;
  end_date: string;
  group_by_period?: string | null;
  period_list?: string[];
};

/** `--factory`, which FACTORY may replace. */
export const NAMED_FACTORY = FACTORY;
export const RANGE = { since: { type: "string" as const }, until: { type: "string" as const } };
export const PERIOD = { ...RANGE, period: { type: "string" as const, choices: CHOICES.periods } };

/** Returns the path below the factory named by the argument or by --factory. Throws `UsageError` if both are given. */
export function namedFactoryPath(
  cli: Cli,
  values: Values,
  factory: string | undefined,
  ...more: readonly string[]
): Promise<string> {
  if (factory !== undefined && values["factory"] !== undefined)
    throw new UsageError("Name the factory once: as FACTORY or with --factory.");
  return factoryPath(cli, factory === undefined ? values : { ...values, factory }, ...more);
}

/** Returns the common query of metrics and costs. */
export const rangeQuery = (values: Values) => ({
  start_date: textOption(values, "since"),
  end_date: textOption(values, "until"),
  group_by_period: textOption(values, "period"),
});

/** Returns the line that states the range of the numbers below it. */
export const rangeText = ({ start_date: start, end_date: end, as_of: asOf }: Ranged): string =>
  `from ${start} to ${end}, complete up to ${asOf}`;

/** Returns the heading of a column of series; "" without periods. */
export const periodText = ({ group_by_period: period, period_list: periods = [] }: Ranged): string =>
  period && periods.length > 0 ? `PER ${period.toUpperCase()}, ${periods[0]} TO ${periods.at(-1)}` : "";

/** Returns an amount with two decimals, four below one dollar; "-" without one. */
export const dollarsText = (dollars: number | null): string =>
  dollars === null ? "-" : `$${dollars.toFixed(Math.abs(dollars) < 1 ? 4 : 2)}`;

const UNITS = [
  ["d", 86_400],
  ["h", 3600],
  ["min", 60],
] as const;

/** Returns seconds in the largest unit of which there is one; "-" without a value. */
export function durationText(seconds: number | null): string {
  if (seconds === null) return "-";
  const [unit, size] = UNITS.find(([, length]) => seconds >= length) ?? ["s", 1];
  return `${(seconds / size).toFixed(1)} ${unit}`;
}
