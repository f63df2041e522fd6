import { describe, expect, test } from "@jest/globals";
import { isDistinguishable, pairedBootstrap } from "./index.ts";
import { resampledMeans } from "./paired-bootstrap.ts";

const pair = (baseline: number | null, candidate: number | null) => ({ baseline, candidate });
const repeat = <T>(count: number, value: T): T[] => new Array<T>(count).fill(value);
const both = (differences: readonly number[]) => differences.map((difference) => pair(0, difference));
const run = (differences: readonly number[], seed = 1) =>
  pairedBootstrap(both(differences), { seed, resamples: 10_000 });

/** Sums of all n^n resamples of n values, each with its probability. */
function everyResample(values: readonly number[]): Map<number, number> {
  let sums = new Map([[0, 1]]);
  for (let draw = 0; draw < values.length; draw++) {
    const next = new Map<number, number>();
    for (const [sum, probability] of sums)
      for (const value of values) next.set(sum + value, (next.get(sum + value) ?? 0) + probability / values.length);
    sums = next;
  }
  return sums;
}

/** Returns the probability of the means that are counted, over all resamples. */
function exactly(values: readonly number[]): (isCounted: (mean: number) => boolean) => number {
  const sums = [...everyResample(values)];
  return (isCounted) => sums.reduce((total, [sum, share]) => total + (isCounted(sum / values.length) ? share : 0), 0);
}

/** Student 1908 (Cushny and Peebles): hours of sleep gained by two drugs, ten patients, in tenths of an hour. */
const SLEEP = { first: [7, -16, -2, -12, -1, 34, 37, 8, 0, 20], second: [19, 8, 11, 1, -1, 44, 55, 16, 46, 34] };
const SLEEP_DIFFERENCES = SLEEP.second.map((value, i) => value - SLEEP.first[i]!);

describe("the paired bootstrap", () => {
  test.each([
    ["two values", [0, 1]],
    ["three values", [-1, 0, 1]],
    ["five values", [-3, -1, 0, 2, 7]],
    ["five values with ties", [1, 1, 0, 0, -1]],
    ["ten values of published data", SLEEP_DIFFERENCES],
  ])("has the distribution of all resamples of %s", (_what, values) => {
    const means = resampledMeans(values, 20_261_123, 10_000);
    const probability = exactly(values);
    const distance = [...everyResample(values).keys()].map((sum) => {
      const isCounted = (mean: number): boolean => mean <= sum / values.length + 1e-9;
      return Math.abs(means.filter(isCounted).length / means.length - probability(isCounted));
    });
    expect(Math.max(...distance)).toBeLessThan(0.0195); // Kolmogorov: above with a probability of 0.001
  });

  test.each([
    ["ten pairs of published data", SLEEP_DIFFERENCES],
    ["five pairs", [-3, -1, 0, 2, 7]],
    ["twenty tied pairs", [...repeat(9, 0), ...repeat(8, 1), ...repeat(3, -1)]],
  ])("leaves 2.5 % of all resamples of %s outside each end", (_what, values) => {
    const { low, high } = run(values).interval!;
    const probability = exactly(values);
    expect(probability((mean) => mean < low - 1e-9)).toBeLessThan(0.03);
    expect(probability((mean) => mean <= low + 1e-9)).toBeGreaterThan(0.02);
    expect(probability((mean) => mean > high + 1e-9)).toBeLessThan(0.03);
    expect(probability((mean) => mean >= high - 1e-9)).toBeGreaterThan(0.02);
  });

  test("finds the published difference of the second drug and reports it as distinguishable", () => {
    const result = pairedBootstrap(
      SLEEP.first.map((baseline, i) => pair(baseline, SLEEP.second[i]!)),
      { seed: 1 },
    );
    expect(result).toMatchObject({
      difference: expect.closeTo(15.8, 12),
      pairs: 10,
      differingPairs: 9,
      confidence: 0.95,
      resamples: 2_000,
    });
    expect(isDistinguishable(result)).toBe(true);
  });

  test("is reproducible with the same seed and returns seed and resamples", () => {
    const values = SLEEP_DIFFERENCES.map((value) => value - 9);
    expect(run(values, 7)).toEqual(run(values, 7));
    expect(run(values, 7)).toMatchObject({ seed: 7, resamples: 10_000 });
    expect(resampledMeans(values, 7, 50)).not.toEqual(resampledMeans(values, 8, 50));
  });

  test("uses fewer resamples for many pairs", () =>
    expect(pairedBootstrap(both(repeat(200, 1)), { seed: 1 }).resamples).toBe(1_250));

  test("changes only its sign when the sides are exchanged", () => {
    const values = [1, 1, 0, 1, 0, -1, 1];
    const [there, back] = [run(values), run(values.map((value) => -value))];
    expect([-back.difference!, -back.interval!.high, -back.interval!.low]).toEqual([
      there.difference,
      there.interval!.low,
      there.interval!.high,
    ]);
  });

  test("omits pairs that lack a side and counts them", () =>
    expect(
      pairedBootstrap([pair(0, 1), pair(null, 1), pair(1, null), pair(null, null), pair(0, 0)], { seed: 1 }),
    ).toMatchObject({
      difference: 0.5,
      pairs: 2,
      incompletePairs: 3,
      differingPairs: 1,
    }));

  test.each([
    ["no pair", [], null],
    ["one pair", [1], 1],
  ])("of %s has no interval and shows no difference", (_what, values, difference) => {
    const result = run(values);
    expect([result.difference, result.interval, isDistinguishable(result)]).toEqual([difference, null, false]);
  });
});

describe("a difference", () => {
  test.each([
    ["all pairs tie", false, repeat(50, 0)],
    ["five pairs differ, all equally", false, repeat(5, 1)],
    ["six pairs differ, all equally", true, repeat(6, 1)],
    ["six of nine pairs differ, all equally", true, [...repeat(6, -1), ...repeat(3, 0)]],
    ["as many pairs differ in each direction", false, [...repeat(20, 1), ...repeat(20, -1)]],
    ["four of nine pairs differ, although the interval is above 0", false, [...repeat(4, 1), ...repeat(5, 0)]],
    ["fifteen of twenty differ in one direction, five in the other", true, [...repeat(15, 1), ...repeat(5, -1)]],
  ])("when %s is distinguishable: %s", (_what, expected, values) =>
    expect(isDistinguishable(run(values))).toBe(expected),
  );

  test("without variance has an interval of one point", () =>
    expect(run(repeat(8, 1)).interval).toEqual({ low: 1, high: 1 }));
});
