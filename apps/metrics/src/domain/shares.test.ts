import { expect, test } from "@jest/globals";
import { sharesOf, splitEvenly } from "./shares.ts";

test.each([
  ["divides evenly", 9n, 3, [3n, 3n, 3n]],
  ["gives the remainder to the first", 11n, 3, [4n, 4n, 3n]],
  ["gives a micro-dollar to the first alone", 1n, 3, [1n, 0n, 0n]],
  ["splits nothing", 0n, 2, [0n, 0n]],
  ["leaves one part whole", 7n, 1, [7n]],
  ["splits a negative amount", -1n, 3, [0n, 0n, -1n]],
  ["splits more than Number.MAX_SAFE_INTEGER", 2n ** 60n + 1n, 2, [2n ** 59n + 1n, 2n ** 59n]],
])("%s", (_, micros, parts, expected) => {
  expect(splitEvenly(micros, parts)).toEqual(expected);
  expect(expected.reduce((sum, part) => sum + part)).toBe(micros);
});

test("splits each component by itself, the first by URL first, and counts a URL once", () => {
  expect(sharesOf({ inferenceMicros: 3n, computeMicros: 2n, platformMicros: 0n }, ["b", "a", "b"])).toEqual([
    { urlKey: "a", inferenceMicros: 2n, computeMicros: 1n, platformMicros: 0n },
    { urlKey: "b", inferenceMicros: 1n, computeMicros: 1n, platformMicros: 0n },
  ]);
});
