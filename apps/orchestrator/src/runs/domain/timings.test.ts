import { readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";
import { DEFAULT_TIMINGS, scaleTimings } from "./timings.ts";

const UNITS: Readonly<Record<string, number>> = { s: 1_000, min: 60_000, h: 3_600_000 };

test("docs/run-life-cycle.md states the timings of the code", () => {
  const page = readFileSync(new URL("../../../../../docs/run-life-cycle.md", import.meta.url), "utf8");
  const documented = [...page.matchAll(/^\|[^|]+\| (`[^|]+) \| ([^|]+) \|$/gm)].flatMap(([, names, values]) => {
    const settings = [...names!.matchAll(/`(\w+)`/g)].map(([, name]) => name!);
    const spans = [...values!.matchAll(/(\d+) (s|min|h)\b/g)].map(([, count, unit]) => Number(count) * UNITS[unit!]!);
    return settings.map((name, at): [string, number | undefined] => [name, spans[at]]);
  });
  expect(documented.length).toBeGreaterThan(10);
  expect(DEFAULT_TIMINGS).toMatchObject(Object.fromEntries(documented));
  expect(scaleTimings(30).leaseTtlMs).toBe(1_500);
});
