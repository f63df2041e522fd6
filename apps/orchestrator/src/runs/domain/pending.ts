/** Within this time, most offers are accepted. */
const FRESH_MS = 1_000;

/**
 * Returns the `Retry-After`, in seconds, of an operation that a PENDING run refuses. Published clients retry twice: the
 * first retry may arrive while the offer is still open, the second arrives after its end. `leftMs`: time until the
 * offer expires.
 */
export function retryAfterOffer(leftMs: number, offerTtlMs: number): number {
  return leftMs > offerTtlMs - FRESH_MS ? 1 : Math.max(1, Math.ceil(leftMs / 1_000));
}
