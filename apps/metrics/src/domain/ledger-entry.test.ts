import { expect, test } from "@jest/globals";
import { computeMicros, type ComputePrice } from "./ledger-entry.ts";

const PRICE: ComputePrice = {
  version: 1,
  vcpuHourMicros: 40_000n,
  gbHourMicros: 5_000n,
  platformRunMicros: 0n,
  effectiveFrom: new Date(0),
};
const START = Date.parse("2026-11-18T09:00:00.000Z");
const interval = (ms: number, vcpus: number, memoryGb: number) => ({
  executionId: "1",
  attempt: 1,
  startedAt: new Date(START),
  endedAt: new Date(START + ms),
  vcpus,
  memoryGb,
});

test.each([
  ["an hour of 2 vCPUs and 4 GB", interval(3_600_000, 2, 4), 100_000n],
  ["fractions of a vCPU and a gigabyte", interval(3_600_000, 0.25, 0.1), 10_500n],
  ["half a micro-dollar, rounded up", interval(40, 1, 1), 1n], // 40 ms of 45,000 per hour = 0.5
  ["less than half, rounded down", interval(39, 1, 1), 0n],
  ["no time", interval(0, 1, 1), 0n],
  ["an end before its start, by a clock that was set back", interval(-5_000, 1, 1), 0n],
  ["unknown vCPUs", interval(1_000, 0, 1), undefined],
  ["unknown memory", interval(1_000, 1, 0), undefined],
])("%s", (_, used, micros) => expect(computeMicros(used, PRICE)).toBe(micros));

test("a dimension without a price need not be known", () => {
  expect(computeMicros(interval(3_600_000, 2, 0), { ...PRICE, gbHourMicros: 0n })).toBe(80_000n);
  expect(computeMicros(interval(3_600_000, 0, 0), { ...PRICE, gbHourMicros: 0n, vcpuHourMicros: 0n })).toBe(0n);
});
