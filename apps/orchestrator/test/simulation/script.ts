import { array, nat, type Arbitrary } from "fast-check";

const { MILLWRIGHT_DRILL_SCALE, MILLWRIGHT_DRILL_SEED } = process.env;

/** How many times as much as in an ordinary test run is tried; `MILLWRIGHT_DRILL_SCALE`. */
export const SCALE = Number(MILLWRIGHT_DRILL_SCALE ?? 1);

/** The same for every test run, so that none fails by chance; a drill has its own each time, and prints it. */
export const SEED = Number(MILLWRIGHT_DRILL_SEED ?? 20_260_101);

/** A list of decisions, which fast-check can make shorter and simpler when a story made of it goes wrong. */
export const aScript = (decisions: number): Arbitrary<number[]> =>
  array(nat(0xffff), { minLength: decisions, maxLength: decisions, size: "max" });
