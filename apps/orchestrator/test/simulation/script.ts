import { timeoutFactor } from "@millwright/testing";
import { array, nat, type Arbitrary } from "fast-check";

const { MILLWRIGHT_DRILL_SCALE, MILLWRIGHT_DRILL_SEED } = process.env;

/** The factor by which more is tried than in an ordinary test run (`MILLWRIGHT_DRILL_SCALE`). */
export const SCALE = Number(MILLWRIGHT_DRILL_SCALE ?? 1);

/** Bounds hanging, not speed. */
export const SIMULATION_TIMEOUT_MS = 300_000 * SCALE * timeoutFactor();

/**
 * The seed (`MILLWRIGHT_DRILL_SEED`). It is fixed for test runs, so that none fails by chance. A drill sets and prints
 * a new seed each time.
 */
export const SEED = Number(MILLWRIGHT_DRILL_SEED ?? 20_260_101);

/** Generates a list of decisions, which fast-check shrinks when a simulation fails. */
export const aScript = (decisions: number): Arbitrary<number[]> =>
  array(nat(0xffff), { minLength: decisions, maxLength: decisions, size: "max" });
