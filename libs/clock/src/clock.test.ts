import { expect, test } from "@jest/globals";
import { manualClock, systemClock } from "./index.ts";

test("a manual clock advances only when it is moved", () => {
  const clock = manualClock("2026-11-20T10:00:00.000Z");
  expect(clock.now().toISOString()).toBe("2026-11-20T10:00:00.000Z");
  clock.advance(1_500);
  expect(clock.now().toISOString()).toBe("2026-11-20T10:00:01.500Z");
  expect(clock.monotonicMs()).toBe(1_500);
});

test("setting the wall clock back does not move monotonic time", () => {
  const clock = manualClock("2026-11-20T10:00:00.000Z");
  clock.advance(10);
  clock.set("2020-01-01T00:00:00.000Z");
  expect([clock.now().getUTCFullYear(), clock.monotonicMs()]).toEqual([2020, 10]);
});

test("a Date handed out cannot change the clock", () => {
  const clock = manualClock();
  clock.now().setUTCFullYear(1999);
  expect(clock.now().getUTCFullYear()).toBe(2026);
});

test("the system clock's monotonic time never goes back", () => {
  const readings = Array.from({ length: 100 }, () => systemClock.monotonicMs());
  expect([...readings].sort((a, b) => a - b)).toEqual(readings);
});
