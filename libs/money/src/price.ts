/**
 * The price of a model: integer micro-dollars (1 $ = 1,000,000) per million tokens, so also micro-dollars × 10⁻⁶ per
 * token.
 */
export type Price = {
  readonly inputPerMillionMicros: bigint;
  readonly outputPerMillionMicros: bigint;
  /** Absent: cached reads cost as much as input. */
  readonly cacheReadPerMillionMicros?: bigint;
  /** Absent: cache writes cost as much as input. */
  readonly cacheWritePerMillionMicros?: bigint;
};

/** Token counts of one usage, disjoint: `input` does not contain the cached tokens. Whole, not negative. */
export type Tokens = {
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
};

const MILLION = 1_000_000n;

/** Returns the cost of a usage in integer micro-dollars; rounded once, half up. */
export function priceUsage(tokens: Tokens, price: Price): bigint {
  const perMillion =
    BigInt(tokens.input) * price.inputPerMillionMicros +
    BigInt(tokens.output) * price.outputPerMillionMicros +
    BigInt(tokens.cacheRead ?? 0) * (price.cacheReadPerMillionMicros ?? price.inputPerMillionMicros) +
    BigInt(tokens.cacheWrite ?? 0) * (price.cacheWritePerMillionMicros ?? price.inputPerMillionMicros);
  return (perMillion + MILLION / 2n) / MILLION;
}

/** Returns micro-dollars as dollars for a public response; exact to the micro-dollar up to 9 billion dollars. */
export const toDollars = (micros: bigint): number => Number(micros) / 1_000_000;

/** Returns an amount in dollars as micro-dollars, rounded to the nearest. */
export const toMicros = (dollars: number): bigint => BigInt(Math.round(dollars * 1_000_000));

/** Returns micro-dollars as (fractional) cents for a public response. */
export const toCents = (micros: bigint): number => Number(micros) / 10_000;
