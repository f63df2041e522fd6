/** Micro-dollars per component. */
export type Spend = { readonly inference: bigint; readonly compute: bigint; readonly platform: bigint };

/** Returns the parts of an amount that is split evenly into one or more; what does not divide is carried by the first, one micro-dollar each. */
export function splitEvenly(micros: bigint, parts: number): bigint[] {
  const count = BigInt(parts);
  const remainder = ((micros % count) + count) % count;
  const part = (micros - remainder) / count;
  return Array.from({ length: parts }, (_, index) => (BigInt(index) < remainder ? part + 1n : part));
}

/** Returns the spend of a run tree that each of its pull requests carries, by URL key in ascending order. */
export function sharesOf(spend: Spend, urlKeys: readonly string[]): (Spend & { readonly urlKey: string })[] {
  const inOrder = [...new Set(urlKeys)].toSorted((a, b) => (a < b ? -1 : 1));
  const [inference, compute, platform] = [spend.inference, spend.compute, spend.platform].map((micros) => splitEvenly(micros, inOrder.length));
  return inOrder.map((urlKey, index) => ({ urlKey, inference: inference![index]!, compute: compute![index]!, platform: platform![index]! }));
}
