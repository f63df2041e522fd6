import { invalidArgument } from "@millwright/errors";

/** Limits of lists without limits of their own. */
const LIMITS = { default: 50, max: 100 };

/**
 * Returns the number of rows of a page; 0 = the default. Unlike `clampPageSize` it rejects a size out of range, as the
 * contracts of this service state. Errors: limit_invalid.
 */
export function pageSizeOf(
  requested: number,
  limits: { readonly default: number; readonly max: number } = LIMITS,
): number {
  if (requested === 0) return limits.default;
  if (requested < 1 || requested > limits.max)
    throw invalidArgument("limit_invalid", `limit must be between 1 and ${limits.max} (got ${requested}).`);
  return requested;
}
