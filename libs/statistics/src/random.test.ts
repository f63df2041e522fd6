import { expect, test } from "@jest/globals";
import { seededIndex, xoshiro128 } from "./random.ts";

test("xoshiro128** returns the numbers of its authors' C program", () => {
  const next = xoshiro128([1, 2, 3, 4]);
  expect(Array.from({ length: 10 }, next)).toEqual([
    11520, 0, 5927040, 70819200, 2031721883, 1637235492, 1287239034, 3734860849, 3729100597, 4258142804,
  ]);
});

test("an index is uniform below its bound", () => {
  const drawIndex = seededIndex(7);
  const counts = new Array<number>(6).fill(0);
  for (let i = 0; i < 60_000; i++) counts[drawIndex(6)]!++;
  const chiSquared = counts.reduce((sum, count) => sum + (count - 10_000) ** 2 / 10_000, 0);
  expect(chiSquared).toBeLessThan(20.5); // 5 degrees of freedom: above with a probability of 0.001
});

test("the same seed repeats the same indexes, another seed does not", () => {
  const draw = (seed: number): number[] => {
    const drawIndex = seededIndex(seed);
    return Array.from({ length: 8 }, () => drawIndex(1000));
  };
  expect(draw(1)).toEqual(draw(1));
  expect(draw(1)).not.toEqual(draw(2));
  expect(draw(0)).not.toEqual(new Array(8).fill(0));
});
