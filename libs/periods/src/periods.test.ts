import { expect, test } from "@jest/globals";
import { domainError } from "@millwright/testing";
import { periodsOf, resolveRange, type PeriodUnit } from "./periods.ts";

const range = (start: string, end: string) => ({ start: new Date(start), end: new Date(end) });
const labels = (start: string, end: string, unit: PeriodUnit) =>
  periodsOf(range(start, end), unit).map(({ label }) => label);

test.each<[string, string, string, PeriodUnit, string[]]>([
  ["a single instant of a day", "2026-01-01T23:59:59.999Z", "2026-01-02T00:00:00Z", "day", ["2026-01-01"]],
  ["the last moments of a year", "2025-12-31T23:00:00Z", "2026-01-01T01:00:00Z", "day", ["2025-12-31", "2026-01-01"]],
  ["days of the first century", "0050-02-28T00:00:00Z", "0050-03-02T00:00:00Z", "day", ["0050-02-28", "0050-03-01"]],
  [
    "months of the first century",
    "0099-12-31T00:00:00Z",
    "0100-01-02T00:00:00Z",
    "month",
    ["0099-12-01", "0100-01-01"],
  ],
  ["a leap day", "2028-02-28T00:00:00Z", "2028-03-01T00:00:00Z", "day", ["2028-02-28", "2028-02-29"]],
  [
    "a week that begins in the month before",
    "2026-01-01T00:00:00Z",
    "2026-01-05T00:00:00Z",
    "week",
    ["2025-12-28", "2026-01-04"],
  ],
  ["a Saturday and a Sunday", "2026-11-14T00:00:00Z", "2026-11-16T00:00:00Z", "week", ["2026-11-08", "2026-11-15"]],
  [
    "months of different lengths",
    "2026-01-31T00:00:00Z",
    "2026-03-01T00:00:00.001Z",
    "month",
    ["2026-01-01", "2026-02-01", "2026-03-01"],
  ],
])("%s: from %s to %s by %s", (_what, start, end, unit, expected) =>
  expect(labels(start, end, unit)).toEqual(expected),
);

test("periods adjoin and cover exactly the range", () => {
  const { start, end } = range("2026-02-03T04:05:06Z", "2026-05-06T07:08:09Z");
  const periods = periodsOf({ start, end }, "week");
  expect([periods[0]!.from, periods.at(-1)!.to]).toEqual([start, end]);
  for (const [index, period] of periods.slice(1).entries()) expect(period.from).toEqual(periods[index]!.to);
});

test("365 periods are the most", () => {
  expect(labels("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", "day")).toHaveLength(365);
  expect(() => labels("2026-01-01T00:00:00Z", "2027-01-01T00:00:00.001Z", "day")).toThrow(
    domainError({ reason: "too_many_periods" }),
  );
});

test("a range ends now and begins 30 days before its end unless given", () => {
  const now = new Date("2026-11-20T10:00:00Z");
  expect(resolveRange({}, now)).toEqual(range("2026-10-21T10:00:00Z", "2026-11-20T10:00:00Z"));
  expect(resolveRange({ end: new Date("2026-01-31T00:00:00Z") }, now)).toEqual(
    range("2026-01-01T00:00:00Z", "2026-01-31T00:00:00Z"),
  );
  expect(() => resolveRange({ start: now }, now)).toThrow(domainError({ reason: "date_range_invalid" }));
});

test("a range does not begin before year 1 by default", () => {
  const [first, end] = [new Date("0001-01-01T00:00:00Z"), new Date("0001-01-02T00:00:00Z")];
  expect(resolveRange({ end }, new Date())).toEqual({ start: first, end });
  expect(() => resolveRange({ end: first }, new Date())).toThrow(domainError({ reason: "date_range_invalid" }));
});
