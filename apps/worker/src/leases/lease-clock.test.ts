import { describe, expect, test } from "@jest/globals";
import { manualClock } from "@millwright/clock";
import { OutboundGateClosed, outboundGateOf } from "../egress/outbound-gate.ts";
import { LeaseLost } from "../context/execution-errors.ts";
import { LeaseClock } from "./lease-clock.ts";
import { momentOf } from "../time/moment.ts";

const DOORS_CLOSE_MS = 30_000;

function aLease() {
  const clock = manualClock();
  const asleep = { frozen: false };
  /** A sleeping laptop: the monotonic clock stops while the wall clock advances. */
  const laptop = { now: () => clock.now(), monotonicMs: () => (asleep.frozen ? 0 : clock.monotonicMs()) };
  const lease = new LeaseClock(laptop, () => DOORS_CLOSE_MS, momentOf(laptop));
  const stop = new AbortController();
  return { clock, laptop, asleep, lease, stop, gate: outboundGateOf(lease, stop.signal) };
}

describe("the outbound gate", () => {
  test("closes 30 s after the last successful renewal was sent", () => {
    const { clock, lease, gate } = aLease();
    clock.advance(29_999);
    expect(() => gate.assertOpen()).not.toThrow();
    const sent = momentOf(clock);
    clock.advance(5_000); // the duration of the call
    lease.renewed(sent);
    clock.advance(24_999);
    expect(() => gate.assertOpen()).not.toThrow();
    clock.advance(1);
    expect(() => gate.assertOpen()).toThrow(OutboundGateClosed);
    expect(lease.closedForMs()).toBe(0);
    clock.advance(7);
    expect(lease.closedForMs()).toBe(7);
  });

  test("closes by the wall clock if the monotonic clock stood still during sleep", () => {
    const { clock, asleep, gate } = aLease();
    asleep.frozen = true;
    clock.advance(DOORS_CLOSE_MS);
    expect(() => gate.assertOpen()).toThrow(OutboundGateClosed);
  });

  test("closes by the monotonic clock if the wall clock was set back", () => {
    const { clock, gate } = aLease();
    clock.advance(DOORS_CLOSE_MS);
    clock.set("2020-01-01T00:00:00Z");
    expect(() => gate.assertOpen()).toThrow(OutboundGateClosed);
  });

  test("is not opened by a response to an older heartbeat", () => {
    const { clock, lease } = aLease();
    const older = momentOf(clock);
    clock.advance(20_000);
    lease.renewed(momentOf(clock));
    lease.renewed(older);
    clock.advance(20_000);
    expect(lease.isOpen()).toBe(true);
  });

  test("releases waiting callers when the lease is renewed", async () => {
    const { clock, lease, gate } = aLease();
    clock.advance(DOORS_CLOSE_MS);
    let isThrough = false;
    const waiting = gate.whenOpen().then(() => (isThrough = true));
    await Promise.resolve();
    expect(isThrough).toBe(false);
    lease.renewed(momentOf(clock));
    await waiting;
    expect(isThrough).toBe(true);
  });

  test("rejects waiting callers when the attempt has ended", async () => {
    const { clock, gate, stop } = aLease();
    clock.advance(DOORS_CLOSE_MS);
    const waiting = gate.whenOpen();
    stop.abort(new LeaseLost());
    await expect(waiting).rejects.toBeInstanceOf(LeaseLost);
    expect(() => gate.assertOpen()).toThrow(LeaseLost);
  });
});
