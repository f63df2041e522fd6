import { expect, test } from "@jest/globals";
import { StartFailures } from "./start-failures.ts";

const TIMINGS = { retryFirstMs: 1_000, retryMaxMs: 8_000 };

test("after each consecutive failure to start a sandbox the worker waits longer before it returns the run, until one starts", () => {
  const failures = new StartFailures();
  const delays = Array.from({ length: 6 }, () => failures.add(TIMINGS));
  for (const [index, delayMs] of delays.entries()) {
    const most = Math.min(8_000, 1_000 * 2 ** index);
    expect(delayMs).toBeGreaterThanOrEqual(most / 2);
    expect(delayMs).toBeLessThanOrEqual(most);
  }
  failures.reset();
  expect(failures.add(TIMINGS)).toBeLessThanOrEqual(1_000);
});
