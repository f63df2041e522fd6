import { expect, test } from "@jest/globals";
import { timeoutFactor } from "@millwright/testing";
import { drill } from "../src/index.ts";

/** `npm run drill` plays thousands. */
const COUNT = Number(process.env["MILLWRIGHT_DRILL"] ?? 200);
const SEED = 1;
const PATIENCE_MS = 180_000;
/** Bounds hanging, not speed. */
const TIMEOUT_MS = 40 * 60_000;

test(
  `${COUNT} schedules of killed, frozen and cut processes leave no immortal run, no event lost or doubled, no double claim, no zombie's write, and no end without a cause`,
  async () => {
    const { played, breaches } = await drill({
      seed: SEED,
      count: COUNT,
      width: 6,
      patienceMs: PATIENCE_MS * timeoutFactor(),
    });
    expect(breaches).toEqual([]);
    expect(played).toHaveLength(COUNT);
    expect(played.flatMap(({ states }) => states)).toContain("SUCCEEDED");
    expect(played.reduce((sum, { faults }) => sum + faults, 0)).toBeGreaterThan(COUNT / 2);
  },
  TIMEOUT_MS,
);
