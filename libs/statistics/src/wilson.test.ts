import { describe, expect, test } from "@jest/globals";
import { wilson } from "./index.ts";

const Z = 1.959963984540054;

/**
 * The bounds are the proportions p at which the score statistic (x − n p)² / (n p (1 − p)) is z²; found by bisection.
 */
function bySolving(successes: number, trials: number): [number, number] {
  const isRejected = (p: number): boolean => (successes - trials * p) ** 2 > Z * Z * trials * p * (1 - p);
  const edge = (rejected: number, accepted: number): number => {
    let [out, into] = [rejected, accepted];
    for (let i = 0; i < 200; i++) {
      const half = (out + into) / 2;
      if (isRejected(half)) out = half;
      else into = half;
    }
    return into;
  };
  const observed = successes / trials;
  return [successes === 0 ? 0 : edge(0, observed), successes === trials ? 1 : edge(1, observed)];
}

describe("the Wilson interval", () => {
  // Newcombe 1998, Statistics in Medicine 17:857–872, table I, method 3.
  test.each([
    [81, 263, 0.2553, 0.3662],
    [15, 148, 0.0624, 0.1605],
    [0, 20, 0, 0.1611],
    [1, 29, 0.0061, 0.1718],
  ])("of %i of %i is the published one", (successes, trials, low, high) => {
    const interval = wilson(successes, trials)!;
    expect([interval.low.toFixed(4), interval.high.toFixed(4)]).toEqual([low.toFixed(4), high.toFixed(4)]);
  });

  test("solves the score equation for every result of up to 40 trials", () => {
    for (let trials = 1; trials <= 40; trials++)
      for (let successes = 0; successes <= trials; successes++) {
        const { low, high } = wilson(successes, trials)!;
        const [expectedLow, expectedHigh] = bySolving(successes, trials);
        expect(Math.max(Math.abs(low - expectedLow), Math.abs(high - expectedHigh))).toBeLessThan(1e-12);
      }
  });

  test("is symmetric in successes and failures", () => {
    const [few, many] = [wilson(3, 17)!, wilson(14, 17)!];
    expect([1 - many.high, 1 - many.low]).toEqual([expect.closeTo(few.low, 12), expect.closeTo(few.high, 12)]);
  });

  test.each([
    [0, 1, 0, 0.7935],
    [1, 1, 0.2065, 1],
    [9, 9, 0.7009, 1],
  ])("of the small sample %i of %i stays within 0 and 1 and is not a point", (successes, trials, low, high) =>
    expect(wilson(successes, trials)).toEqual({ low: expect.closeTo(low, 4), high: expect.closeTo(high, 4) }),
  );

  test("is narrower at 90 % and wider at 99 % confidence", () => {
    const width = (confidence: 0.9 | 0.95 | 0.99): number =>
      wilson(7, 20, confidence)!.high - wilson(7, 20, confidence)!.low;
    expect([width(0.9) < width(0.95), width(0.95) < width(0.99)]).toEqual([true, true]);
  });

  test("of no trials is null", () => expect(wilson(0, 0)).toBeNull());

  test.each([
    [2, 1],
    [-1, 3],
    [0.5, 3],
    [Number.NaN, 3],
  ])("of %d of %d throws RangeError", (successes, trials) =>
    expect(() => wilson(successes, trials)).toThrow(RangeError),
  );
});
