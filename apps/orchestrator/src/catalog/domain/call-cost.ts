import { priceUsage } from "@millwright/money";
import type { ModelAccess, PriceVersion, TokenCounts } from "./usage.ts";

/**
 * Returns the cost of one call in micro-dollars. Returns undefined if the model has no known price, or if input or
 * output was not measured. Cached tokens that were not measured count as 0.
 */
export function costOf(tokens: TokenCounts, price: PriceVersion | undefined): bigint | undefined {
  if (!price || tokens.input === undefined || tokens.output === undefined) return undefined;
  return priceUsage({ ...tokens, input: tokens.input, output: tokens.output }, price);
}

/**
 * Returns the micro-dollars that a call counts against cost limits and budgets. A call without a known cost counts with
 * what was reserved for it. A cost that is stated by an endpoint of the team's choice does not count as less than that:
 * otherwise the endpoint could switch off limits that someone else has set.
 */
export function costUnderLimits({
  statedMicros,
  pricedMicros,
  reservedMicros,
  access,
}: {
  readonly statedMicros: bigint | undefined;
  readonly pricedMicros: bigint | undefined;
  readonly reservedMicros: bigint | undefined;
  readonly access: ModelAccess | undefined;
}): bigint | undefined {
  const computedMicros = pricedMicros ?? reservedMicros;
  if (statedMicros === undefined || computedMicros === undefined) return statedMicros ?? computedMicros;
  return access === "team_endpoint" && computedMicros > statedMicros ? computedMicros : statedMicros;
}
