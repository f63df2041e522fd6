import { hash } from "node:crypto";

const PARTS = 10_000;

/**
 * Whether a scorer's sample of runs contains a run; `rate` is in percent with two decimals. The same pair always gives the same answer, and a
 * lower rate picks a subset of the same runs. Source: fields-factory §8.2.
 */
export const isSampled = (scorerUid: string, runUid: string, rate: number): boolean =>
  Number.parseInt(hash("sha256", `${scorerUid}:${runUid}`).slice(0, 12), 16) % PARTS < Math.round(rate * 100);
