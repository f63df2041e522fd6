import { expect, test } from "@jest/globals";
import { priceUsage, toCents, toDollars, toMicros, type Price } from "./index.ts";

const price: Price = {
  inputPerMillionMicros: 3_000_000n,
  outputPerMillionMicros: 15_000_000n,
  cacheReadPerMillionMicros: 300_000n,
  cacheWritePerMillionMicros: 3_750_000n,
};

test.each([
  ["nothing", { input: 0, output: 0 }, 0n],
  ["a million in", { input: 1_000_000, output: 0 }, 3_000_000n],
  ["one of each", { input: 1, output: 1 }, 18n],
  ["all four kinds", { input: 1000, output: 200, cacheRead: 5000, cacheWrite: 400 }, 3_000n + 3_000n + 1_500n + 1_500n],
  ["half a micro-dollar, rounded up once", { input: 0, output: 0, cacheRead: 5 }, 2n],
  ["less than half, rounded down", { input: 0, output: 0, cacheRead: 1 }, 0n],
])("%s costs what the table states", (_, tokens, micros) => expect(priceUsage(tokens, price)).toBe(micros));

test("cached tokens without a price of their own cost as much as input", () =>
  expect(
    priceUsage(
      { input: 0, output: 0, cacheRead: 10, cacheWrite: 10 },
      { inputPerMillionMicros: 2_000_000n, outputPerMillionMicros: 0n },
    ),
  ).toBe(40n));

test("a free model costs nothing", () =>
  expect(priceUsage({ input: 9e9, output: 9e9 }, { inputPerMillionMicros: 0n, outputPerMillionMicros: 0n })).toBe(0n));

test.each([
  [0n, 0, 0],
  [1n, 0.000001, 0.0001],
  [1_234_567n, 1.234567, 123.4567],
  [-20_000n, -0.02, -2],
])("%s micro-dollars are %d dollars, %d cents", (micros, dollars, cents) =>
  expect([toDollars(micros), toCents(micros), toMicros(dollars)]).toEqual([dollars, cents, micros]),
);
