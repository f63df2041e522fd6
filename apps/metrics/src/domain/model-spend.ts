import { divide } from "./spend.ts";

/** A run tree that a pull request carries a part of. `modelId`: the configured model; "" = not known. */
export type TreeShare = {
  /** The inference of the tree that the pull request carries. */
  readonly inferenceMicros: bigint;
  /** Pull requests that share the tree. */
  readonly pullRequestCount: number;
  /** Inference of the whole tree. */
  readonly models: readonly ModelSpend[];
};

export type ModelSpend = { readonly modelId: string; readonly inferenceMicros: bigint };

/**
 * Returns the inference of a pull request per configured model, most expensive first, ties by model. The sum is exactly
 * the inference of its shares: the remainder of the division is assigned to the models with the largest remainders.
 */
export function splitByModel(shares: readonly TreeShare[]): ModelSpend[] {
  const sums = new Map<string, bigint>();
  for (const share of shares)
    for (const { modelId, inferenceMicros } of splitShare(share))
      sums.set(modelId, (sums.get(modelId) ?? 0n) + inferenceMicros);
  return [...sums]
    .map(([modelId, inferenceMicros]) => ({ modelId, inferenceMicros }))
    .filter(({ inferenceMicros }) => inferenceMicros !== 0n)
    .toSorted((a, b) => descending(a.inferenceMicros, b.inferenceMicros) || byModel(a, b));
}

function splitShare({ inferenceMicros, pullRequestCount, models }: TreeShare): ModelSpend[] {
  if (models.length === 0) return [{ modelId: "", inferenceMicros }];
  const count = BigInt(pullRequestCount);
  const parts = models
    .map(({ modelId, inferenceMicros: whole }) => ({ modelId, ...divide(whole, count) }))
    .toSorted((a, b) => descending(a.remainder, b.remainder) || byModel(a, b));
  const left = divide(inferenceMicros - parts.reduce((sum, { quotient }) => sum + quotient, 0n), BigInt(parts.length));
  return parts.map(({ modelId, quotient }, index) => {
    const extra = BigInt(index) < left.remainder ? 1n : 0n;
    return { modelId, inferenceMicros: quotient + left.quotient + extra };
  });
}

const descending = (a: bigint, b: bigint): number => (a === b ? 0 : a > b ? -1 : 1);

type OfModel = { readonly modelId: string };
const byModel = (a: OfModel, b: OfModel): number => (a.modelId < b.modelId ? -1 : a.modelId > b.modelId ? 1 : 0);
