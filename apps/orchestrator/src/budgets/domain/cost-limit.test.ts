import { expect, test } from "@jest/globals";
import { decideCost } from "./cost-limit.ts";

const limit = (runUid: string, limitMicros: bigint, spentMicros: bigint, reservedMicros = 0n) => ({
  runUid,
  limitMicros,
  spentMicros,
  reservedMicros,
});

test.each([
  ["no limit", [], { outcome: "granted" }],
  ["something left", [limit("a", 100n, 99n)], { outcome: "granted" }],
  ["all set aside by others", [limit("a", 100n, 50n, 50n)], { outcome: "wait" }],
  [
    "all spent",
    [limit("a", 1_000_000n, 1_500_000n, 1n)],
    { outcome: "exceeded", message: "This run and its descendants have cost $1.5; the cost limit is $1." },
  ],
  [
    "all spent above",
    [limit("a", 10n, 0n), limit("b", 20n, 20n)],
    {
      outcome: "exceeded",
      message: "The ancestor run b and its descendants have cost $0.00002; the cost limit is $0.00002.",
    },
  ],
  [
    "set aside here, spent above",
    [limit("a", 10n, 5n, 5n), limit("b", 20n, 20n)],
    expect.objectContaining({ outcome: "exceeded" }),
  ],
])("%s", (_, limits, expected) => expect(decideCost("a", limits)).toEqual(expected));
