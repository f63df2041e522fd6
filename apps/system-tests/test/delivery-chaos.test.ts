import { expect, test } from "@jest/globals";
import { timeoutFactor } from "@millwright/testing";
import { deliveryChaos } from "@millwright/test-platform";

/** `npm run deliveryChaos` sends tens of thousands. */
const [IDENTITIES, DELIVERIES] = [
  Number(process.env["MILLWRIGHT_STORM_IDENTITIES"] ?? 10),
  Number(process.env["MILLWRIGHT_STORM_DELIVERIES"] ?? 400),
];
const STALL_TIMEOUT_MS = 180_000;
/** Detects a test that hangs; does not measure speed. */
const TIMEOUT_MS = 40 * 60_000;

test(
  "one of 48 concurrent copies is accepted and starts one run, and hundreds of deliveries are stored, published and decided once, while services, database connections, PostgreSQL and NATS are killed",
  async () => {
    const { copies, violations, faults } = await deliveryChaos({
      seed: 1,
      identities: IDENTITIES,
      deliveries: DELIVERIES,
      stallTimeoutMs: STALL_TIMEOUT_MS * timeoutFactor(),
    });
    expect(violations).toEqual([]);
    expect(copies.answered + copies.unanswered).toBe(48 * IDENTITIES);
    expect(Object.values(faults).reduce((sum, times) => sum + times, 0)).toBeGreaterThan(1);
  },
  TIMEOUT_MS,
);
