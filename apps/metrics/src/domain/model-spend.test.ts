import { expect, test } from "@jest/globals";
import { splitByModel, type TreeShare } from "./model-spend.ts";

const share = (inferenceMicros: bigint, pullRequestCount: number, models: Record<string, bigint>): TreeShare => ({
  inferenceMicros,
  pullRequestCount,
  models: Object.entries(models).map(([modelId, micros]) => ({ modelId, inferenceMicros: micros })),
});

test.each<[string, TreeShare[], [string, bigint][]]>([
  [
    "gives the only pull request everything",
    [share(10n, 1, { a: 3n, b: 7n })],
    [
      ["b", 7n],
      ["a", 3n],
    ],
  ],
  [
    "gives the largest remainders what does not divide",
    [share(4n, 3, { a: 4n, b: 5n, c: 1n })],
    [
      ["a", 2n],
      ["b", 2n],
    ],
  ],
  [
    "gives less to a pull request that carries no remainder",
    [share(3n, 3, { a: 4n, b: 5n, c: 1n })],
    [
      ["b", 2n],
      ["a", 1n],
    ],
  ],
  [
    "adds the shares of several trees",
    [share(5n, 1, { a: 5n }), share(6n, 1, { a: 2n, b: 4n })],
    [
      ["a", 7n],
      ["b", 4n],
    ],
  ],
  [
    "orders equal models by name",
    [share(4n, 1, { b: 2n, a: 2n })],
    [
      ["a", 2n],
      ["b", 2n],
    ],
  ],
  ["leaves out models without spend", [share(2n, 1, { a: 2n, b: 0n })], [["a", 2n]]],
  [
    "splits adjustments that exceed the spend",
    [share(-2n, 2, { a: -5n, b: 2n })],
    [
      ["b", 1n],
      ["a", -3n],
    ],
  ],
  [
    "splits models that cancel out",
    [share(0n, 2, { a: -4n, b: 4n })],
    [
      ["b", 2n],
      ["a", -2n],
    ],
  ],
])("%s", (_what, shares, expected) => {
  const models = splitByModel(shares);
  expect(models.map(({ modelId, inferenceMicros }) => [modelId, inferenceMicros])).toEqual(expected);
  const sum = (values: readonly { readonly inferenceMicros: bigint }[]): bigint =>
    values.reduce((total, { inferenceMicros }) => total + inferenceMicros, 0n);
  expect(sum(models)).toBe(sum(shares));
});
