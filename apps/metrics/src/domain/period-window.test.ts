import { expect, test } from "@jest/globals";
import { splitDays } from "./period-window.ts";

const at = (time: string): Date => new Date(`2026-11-${time}Z`);

test.each([
  [
    "from noon to noon",
    "03T12:00",
    "06T12:00",
    ["03T12:00", "04T00:00"],
    ["04T00:00", "06T00:00"],
    ["06T00:00", "06T12:00"],
  ],
  ["whole days", "03T00:00", "06T00:00", ["03T00:00", "03T00:00"], ["03T00:00", "06T00:00"], ["06T00:00", "06T00:00"]],
  [
    "across one midnight",
    "03T23:00",
    "04T01:00",
    ["03T23:00", "04T00:00"],
    ["04T00:00", "04T00:00"],
    ["04T00:00", "04T01:00"],
  ],
  [
    "within a day",
    "03T01:00",
    "03T02:00",
    ["03T01:00", "03T02:00"],
    ["03T02:00", "03T02:00"],
    ["03T02:00", "03T02:00"],
  ],
] as const)("a range %s is whole days and a part of one day at each end", (_range, start, end, before, days, after) => {
  const range = ([from, to]: readonly [string, string]) => ({ start: at(from), end: at(to) });
  expect(splitDays(range([start, end]))).toEqual({ before: range(before), days: range(days), after: range(after) });
});
