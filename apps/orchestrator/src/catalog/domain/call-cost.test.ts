import { describe, expect, test } from "@jest/globals";
import { costOf } from "./call-cost.ts";
import type { PriceVersion } from "./usage.ts";

const PRICE: PriceVersion = {
  version: 1,
  inputPerMillionMicros: 3_000_000n,
  outputPerMillionMicros: 15_000_000n,
  cacheReadPerMillionMicros: 300_000n,
};
const FREE: PriceVersion = { version: 1, inputPerMillionMicros: 0n, outputPerMillionMicros: 0n };

describe("one call costs", () => {
  test.each([
    [{ input: 1000, output: 100 }, PRICE, 4500n],
    [{ input: 1000, output: 100, cacheRead: 1000 }, PRICE, 4800n],
    [{ input: 0, output: 0 }, FREE, 0n],
    [{ input: 1000, output: 100 }, undefined, undefined],
    [{ input: 1000 }, PRICE, undefined],
    [{}, FREE, undefined],
  ])("%j at %j: %s", (tokens, price, expected) => expect(costOf(tokens, price)).toBe(expected));
});
