import { expect, test } from "@jest/globals";
import { timeoutFactor } from "@millwright/testing";
import { coveringSeeds, drill } from "@millwright/test-platform";

/**
 * These schedules inflict every type of fault on every kind of run; `npm run drill` plays thousands of schedules. An
 * ordinary test run plays those that cover most.
 */
const COVERING = coveringSeeds(1_000);
const SEEDS = process.env["MILLWRIGHT_CHAOS"] === "1" ? COVERING : COVERING.slice(0, 12);
const STALL_TIMEOUT_MS = 180_000;
/** Detects a test that hangs; does not measure speed. */
const TIMEOUT_MS = 40 * 60_000;

test(
  `after ${SEEDS.length} schedules of killed, frozen and disconnected processes every run is terminal with a cause, no event is lost or duplicated, no run is claimed twice, and no lost attempt writes`,
  async () => {
    const { results, violations } = await drill({
      seeds: SEEDS,
      width: 6,
      stallTimeoutMs: STALL_TIMEOUT_MS * timeoutFactor(),
    });
    expect(violations).toEqual([]);
    expect(results).toHaveLength(SEEDS.length);
    expect(results.flatMap(({ states }) => states)).toContain("SUCCEEDED");
    expect(results.reduce((sum, { faults }) => sum + faults, 0)).toBeGreaterThan(SEEDS.length / 2);
  },
  TIMEOUT_MS,
);
