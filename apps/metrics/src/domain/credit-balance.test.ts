import { expect, test } from "@jest/globals";
import { creditBalance, type DaySpend, type Grant } from "./credit-balance.ts";

const NOW = new Date("2026-11-20T10:00:00.000Z");
const grant = (micros: bigint, grantedAt: string, expiresAt?: string): Grant => ({
  micros,
  grantedAt: new Date(grantedAt),
  expiresAt: expiresAt === undefined ? undefined : new Date(expiresAt),
});
const day = (date: string, micros: bigint): DaySpend => ({ day: new Date(date), micros });

test.each<[string, Grant[], DaySpend[], bigint[]]>([
  ["no grants", [], [day("2026-11-01", 5n)], [0n, 0n, 0n, 0n, 0n]],
  ["a grant that lasts", [grant(10n, "2026-11-01T12:00:00Z")], [day("2026-11-01", 4n)], [10n, 4n, 0n, 6n, 0n]],
  ["spend before the first grant", [grant(10n, "2026-11-02")], [day("2026-11-01", 4n)], [10n, 0n, 0n, 10n, 0n]],
  ["more spend than credits", [grant(10n, "2026-11-01")], [day("2026-11-02", 14n)], [10n, 14n, 0n, 0n, 4n]],
  [
    "a grant that has expired",
    [grant(10n, "2026-11-01", "2026-11-05")],
    [day("2026-11-04", 3n), day("2026-11-05", 2n)],
    [10n, 5n, 7n, 0n, 2n],
  ],
  [
    "the grant that expires first is used first, whenever it was granted",
    [grant(10n, "2026-11-01"), grant(10n, "2026-11-02", "2026-11-10")],
    [day("2026-11-03", 8n)],
    [20n, 8n, 2n, 10n, 0n],
  ],
  [
    "a grant does not cover the days before it",
    [grant(5n, "2026-11-01"), grant(10n, "2026-11-10")],
    [day("2026-11-02", 8n), day("2026-11-11", 4n)],
    [15n, 12n, 0n, 6n, 3n],
  ],
  ["a grant that expires at this moment", [grant(10n, "2026-11-01", NOW.toISOString())], [], [10n, 0n, 10n, 0n, 0n]],
])("%s", (_, grants, days, [granted, spent, expired, remaining, overdrawn]) => {
  const balance = creditBalance(grants, days, NOW);
  expect(balance).toEqual({ granted, spent, expired, remaining, overdrawn });
  expect(balance.granted + balance.overdrawn).toBe(balance.spent + balance.expired + balance.remaining);
});
