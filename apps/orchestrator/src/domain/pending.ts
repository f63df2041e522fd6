/** An offer this young is usually accepted within the next second. */
const FRESH_MS = 1_000;

/**
 * Returns after how many seconds an operation that a PENDING run refuses can be repeated. Published clients retry twice: the first
 * retry may come while the offer is still open, the second comes after its end. `leftMs`: until the offer ends.
 */
export function retryAfterOffer(leftMs: number, offerTtlMs: number): number {
  return leftMs > offerTtlMs - FRESH_MS ? 1 : Math.max(1, Math.ceil(leftMs / 1_000));
}
