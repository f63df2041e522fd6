import { expect, test } from "@jest/globals";
import { coveringSeeds, pairsOf } from "./covering-seeds.ts";

const LAST = 1_000;
const pairs = (seeds: readonly number[]): Set<string> => new Set(seeds.flatMap((seed) => [...pairsOf(seed)]));

test("covering seeds pair every type of fault with every kind of run that any seed pairs", () => {
  const covered = pairs(coveringSeeds(LAST));
  expect(covered).toEqual(pairs(Array.from({ length: LAST }, (_, n) => n + 1)));
  const [kinds, faults] = [0, 1].map((part) => new Set([...covered].map((pair) => pair.split(": ")[part])));
  expect(covered.size).toBeGreaterThan(0.99 * kinds!.size * faults!.size);
});

test("covering seeds are a tenth of the seeds at most, and none repeats", () => {
  const seeds = coveringSeeds(LAST);
  expect(new Set(seeds).size).toBe(seeds.length);
  expect(seeds.length).toBeLessThan(LAST / 10);
});
