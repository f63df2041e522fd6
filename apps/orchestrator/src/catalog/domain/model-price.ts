import { invalidArgument } from "@millwright/errors";
import { toDollars, type Price } from "@millwright/money";

/** A version of a model's price; it is never changed. */
export type ModelPrice = Price & {
  readonly modelId: string;
  /** Of this model, from 1. */
  readonly version: number;
  readonly effectiveFrom: Date;
  readonly createdAt: Date;
  /** Undefined: added by a migration, or in SQL. */
  readonly createdBy: { readonly type: string; readonly uid: string } | undefined;
};

/** A position in the list of versions, which is ordered by model and descending version. */
export type ModelPricePosition = { readonly modelId: string; readonly version: number };

export type NewModelPrice = Price & {
  readonly modelId: string;
  /** Undefined: now. */
  readonly effectiveFrom: Date | undefined;
};

const MODEL_ID = /^[\x21-\x7e]{1,200}$/;
/** A million dollars. */
const MICROS_MAX = 1_000_000_000_000n;

/** Returns the price if it is valid. Throws `price_invalid` otherwise. */
export function checkNewModelPrice(price: NewModelPrice): NewModelPrice {
  if (!MODEL_ID.test(price.modelId))
    throw invalidArgument("price_invalid", "model_id must be 1 to 200 printable ASCII characters without spaces.");
  for (const [name, micros] of [
    ["input_per_million_usd", price.inputPerMillionMicros],
    ["output_per_million_usd", price.outputPerMillionMicros],
    ["cache_read_per_million_usd", price.cacheReadPerMillionMicros],
    ["cache_write_per_million_usd", price.cacheWritePerMillionMicros],
  ] as const)
    if (micros !== undefined && (micros < 0n || micros > MICROS_MAX))
      throw invalidArgument("price_invalid", `${name} must be between 0 and 1000000 (got ${toDollars(micros)}).`);
  return price;
}

/** Returns the error for a price that would change what has been charged. */
export const priceInThePast = (effectiveFrom: Date) =>
  invalidArgument(
    "price_invalid",
    `effective_from must not be in the past (got ${effectiveFrom.toISOString()}). The price of recorded calls cannot change.`,
  );
