import { describe, expect, test } from "@jest/globals";
import { Code, ConnectError } from "@connectrpc/connect";
import { DomainError } from "@millwright/errors";
import { platformError } from "./platform-error.ts";
import { retryDelayMs, retrying } from "./retrying.ts";
import { DEFAULT_TIMINGS, timingsFrom } from "./timings.ts";
import { systemTimers } from "../time/timers.ts";

test("a heartbeat of 10 s gives the published timings, and all scale with it", () => {
  expect(DEFAULT_TIMINGS).toMatchObject({
    escalationStepMs: 5_000,
    closedKillMs: 600_000,
    retryFirstMs: 500,
    retryMaxMs: 30_000,
    leaseWaitMs: 20_000,
  });
  expect(
    timingsFrom({ heartbeatMs: 300, leaseTtlMs: 1_500, offerTtlMs: 500, outboundGateCloseMs: 1_000 }),
  ).toMatchObject({
    escalationStepMs: 150,
    closedKillMs: 18_000,
    retryMaxMs: 900,
  });
});

test.each([
  [0, 0, 250],
  [0, 1, 500],
  [3, 1, 4_000],
  [20, 1, 30_000],
  [5_000, 0, 15_000],
])("attempt %s with the random number %s waits %s ms", (attempt, random, ms) =>
  expect(retryDelayMs(DEFAULT_TIMINGS, attempt, random)).toBe(ms),
);

describe("a call", () => {
  const fast = {
    timers: systemTimers,
    timings: () => timingsFrom({ heartbeatMs: 10, leaseTtlMs: 1, offerTtlMs: 1, outboundGateCloseMs: 1 }),
  };
  const never = new AbortController().signal;
  const failing = (...errors: unknown[]) => {
    let calls = 0;
    return { act: () => (calls++ < errors.length ? Promise.reject(errors[calls - 1]) : Promise.resolve(calls)) };
  };

  test("is repeated while its failure is transient", async () => {
    const errors = [Code.Unavailable, Code.DeadlineExceeded, Code.Aborted, Code.Internal, Code.ResourceExhausted].map(
      (code) => new ConnectError("x", code),
    );
    expect(await retrying(fast, never, failing(...errors).act)).toBe(6);
  });

  test.each([
    ["a refusal", new ConnectError("x", Code.PermissionDenied)],
    ["a domain error that is not retryable", new DomainError({ kind: "conflict", reason: "lease_lost", message: "m" })],
    ["a fault of the worker itself", new TypeError("x")],
  ])("is not repeated after %s", async (_, error) => {
    await expect(retrying(fast, never, failing(error).act)).rejects.toEqual(platformError(error));
  });

  test("ends with the abort reason, also in the middle of a pause", async () => {
    const stop = new AbortController();
    const reason = new Error("enough");
    const waiting = retrying({ ...fast, timings: () => DEFAULT_TIMINGS }, stop.signal, () => {
      setImmediate(() => stop.abort(reason));
      return Promise.reject(new ConnectError("x", Code.Unavailable));
    });
    await expect(waiting).rejects.toBe(reason);
  });
});
