import { expect, test } from "@jest/globals";
import { measureMerges, NO_MERGES, type MergeCounts } from "./merge-latency.ts";

const UNKNOWN = Number.NaN;
const counts = (merged: number, additions: number): MergeCounts => ({ ...NO_MERGES, merged, additions });

test("medians of a period are of its pull requests, those of the range of all; stages without an end or below zero are not measured", () => {
  const { total, periods } = measureMerges({
    periods: [counts(3, 10), counts(0, 0), counts(2, 5)],
    times: {
      kickoffAt: Float64Array.of(0, 0, 0, 10_000, 10_000),
      openedAt: Float64Array.of(2_000, 4_000, UNKNOWN, 20_000, 9_000),
      firstHumanReviewAt: Float64Array.of(1_000, 5_500, 7_000, UNKNOWN, UNKNOWN),
      mergedAt: Float64Array.of(8_000, 9_000, 10_000, 30_000, 50_000),
    },
  });
  const medians = ({ kickoffToPr, prToFirstReview, firstReviewToMerge, kickoffToMerge }: typeof total) =>
    [kickoffToPr, prToFirstReview, firstReviewToMerge, kickoffToMerge].map((stage) => [
      stage.medianSeconds,
      stage.measured,
    ]);
  expect(periods.map(medians)).toEqual([
    [
      [3, 2],
      [1.5, 1],
      [3.5, 3],
      [9, 3],
    ],
    [
      [null, 0],
      [null, 0],
      [null, 0],
      [null, 0],
    ],
    [
      [10, 1],
      [null, 0],
      [null, 0],
      [30, 2],
    ],
  ]);
  expect(medians(total)).toEqual([
    [4, 3],
    [1.5, 1],
    [3.5, 3],
    [10, 5],
  ]);
  expect([total.merged, total.additions, periods[2]!.additions]).toEqual([5, 15, 5]);
});
