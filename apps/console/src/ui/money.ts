const CENTS_FROM = 0.01;

/** Returns an amount in US dollars: with cents, or with four decimals if it is less than a cent. */
export const dollars = (amount: number): string => `$${amount.toFixed(amount > 0 && amount < CENTS_FROM ? 4 : 2)}`;

/** Returns a count with separators. */
export const count = (value: number): string => value.toLocaleString("en");
