import { divide, type Spend } from "./spend.ts";

/**
 * Returns the parts of an amount that is split evenly into one or more; what does not divide is carried by the first,
 * one micro-dollar each.
 */
export function splitEvenly(micros: bigint, parts: number): bigint[] {
  const { quotient, remainder } = divide(micros, BigInt(parts));
  return Array.from({ length: parts }, (_, index) => (BigInt(index) < remainder ? quotient + 1n : quotient));
}

/** Returns the spend of a run tree that each of its pull requests carries, by URL key in ascending order. */
export function sharesOf(
  { inferenceMicros, computeMicros, platformMicros }: Spend,
  urlKeys: readonly string[],
): (Spend & { readonly urlKey: string })[] {
  const inOrder = [...new Set(urlKeys)].toSorted((a, b) => (a < b ? -1 : 1));
  const [inference, compute, platform] = [inferenceMicros, computeMicros, platformMicros].map((micros) =>
    splitEvenly(micros, inOrder.length),
  );
  return inOrder.map((urlKey, index) => ({
    urlKey,
    inferenceMicros: inference![index]!,
    computeMicros: compute![index]!,
    platformMicros: platform![index]!,
  }));
}
