import { expect, test } from "@jest/globals";
import { retryAfterOffer } from "./pending.ts";
import { DEFAULT_TIMINGS } from "./timings.ts";

const { offerTtlMs, reaperTickMs } = DEFAULT_TIMINGS;

test("a run is PENDING for at most 15 s: an offer and one round of the reaper, with a second to spare", () => {
  expect(offerTtlMs + reaperTickMs).toBeLessThanOrEqual(14_000);
});

test.each([
  [9_000, 1],
  [8_001, 1],
  [8_000, 8],
  [4_200, 5],
  [1, 1],
  [-3_000, 1],
])("with %d ms of an offer left, retry after %d s", (leftMs, expected) => {
  expect(retryAfterOffer(leftMs, 9_000)).toBe(expected);
});

test("two retries outlast every offer", () => {
  for (let leftMs = offerTtlMs; leftMs > 0; leftMs -= 1) {
    const afterFirst = leftMs - 1_000 * retryAfterOffer(leftMs, offerTtlMs);
    const afterSecond = afterFirst - 1_000 * retryAfterOffer(afterFirst, offerTtlMs);
    expect(afterSecond).toBeLessThanOrEqual(0);
  }
});
