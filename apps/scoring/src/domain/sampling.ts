import { hash } from "node:crypto";

const PARTS = 10_000;

/**
 * Returns whether a run is in a scorer's sample; `rate` is in percent with two decimals. The result is deterministic
 * per pair, and the sample of a lower rate is a subset of the sample of a higher rate.
 */
export const isSampled = (scorerUid: string, runUid: string, rate: number): boolean =>
  Number.parseInt(hash("sha256", `${scorerUid}:${runUid}`).slice(0, 12), 16) % PARTS < Math.round(rate * 100);
