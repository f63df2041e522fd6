import { expect, test } from "@jest/globals";
import { median, seededIndex } from "./index.ts";

const medianOf = (...values: number[]): number | null => median(Float64Array.from(values));

test("the median is the middle value, or the mean of the two in the middle", () => {
  expect(medianOf()).toBeNull();
  expect(medianOf(7)).toBe(7);
  expect(medianOf(4, 1)).toBe(2.5);
  expect(medianOf(9, -1, 5)).toBe(5);
  expect(medianOf(3, 3, 3, 1)).toBe(3);
});

test("equals the middle of the sorted values", () => {
  const below = seededIndex(20261124);
  for (let round = 0; round < 2_000; round++) {
    const values = Float64Array.from({ length: 1 + below(60) }, () => below(40) / 8);
    const sorted = values.toSorted();
    const [low, high] = [sorted[(values.length - 1) >> 1]!, sorted[values.length >> 1]!];
    expect(median(values)).toBe((low + high) / 2);
  }
});

test.each<[string, (index: number, length: number) => number]>([
  ["ascending", (index) => index],
  ["descending", (index, length) => length - 1 - index],
  ["ascending, then descending", (index, length) => Math.min(2 * index, 2 * (length - 1 - index) + 1)],
])("reads %s values in a number of steps that grows with their number alone", (_order, valueAt) => {
  const length = 100_001;
  let reads = 0;
  const counted = new Proxy(
    Float64Array.from({ length }, (_each, index) => valueAt(index, length)),
    {
      get: (target, key) => {
        reads += 1;
        return Reflect.get(target, key, target);
      },
      set: (target, key, value) => Reflect.set(target, key, value, target),
    },
  );
  expect(median(counted)).toBe(50_000);
  expect(reads).toBeLessThan(40 * length);
});
