/** Integer micro-dollars. */
export type Spend = {
  readonly inferenceMicros: bigint;
  readonly computeMicros: bigint;
  readonly platformMicros: bigint;
};

export const NO_SPEND: Spend = { inferenceMicros: 0n, computeMicros: 0n, platformMicros: 0n };

/** Returns the sum of two spends, per component. */
export const addSpend = (a: Spend, b: Spend): Spend => ({
  inferenceMicros: a.inferenceMicros + b.inferenceMicros,
  computeMicros: a.computeMicros + b.computeMicros,
  platformMicros: a.platformMicros + b.platformMicros,
});

/** Returns the sum of the components. */
export const totalMicros = ({ inferenceMicros, computeMicros, platformMicros }: Spend): bigint =>
  inferenceMicros + computeMicros + platformMicros;

/** Whether any component is not zero. Adjustments may make components that cancel out. */
export const hasSpend = ({ inferenceMicros, computeMicros, platformMicros }: Spend): boolean =>
  inferenceMicros !== 0n || computeMicros !== 0n || platformMicros !== 0n;

/**
 * Divides by a positive number and rounds down, so that no remainder is negative: adjustments may make amounts that
 * are.
 */
export function divide(micros: bigint, parts: bigint): { readonly quotient: bigint; readonly remainder: bigint } {
  const remainder = ((micros % parts) + parts) % parts;
  return { quotient: (micros - remainder) / parts, remainder };
}
