import { expect, test } from "@jest/globals";
import { chartOf } from "./chart.ts";
import { Deadline, OutOfTime } from "./deadline.ts";
import { tableOf } from "./report.ts";
import type { Row } from "./results.ts";
import { evaluateTargets } from "./targets.ts";

const row = (on: Row["on"], who: string, perSecond: number, ours?: number): Row => ({
  on,
  what: "read a run, one at a time",
  who,
  perSecond,
  ours,
});
const rows = [
  row("standalone", "millwright", 300),
  row("standalone", "floor", 400, 0.75),
  { ...row("standalone", "millwright", 1), what: "other" },
  row("processes", "millwright", 100),
  row("processes", "floor", 400, 0.25),
];

test("table and chart group the rows of both setups by scenario", () => {
  const table = tableOf({
    isQuick: true,
    unmeasured: ["feed on processes"],
    seconds: 1,
    cores: 2,
    node: "24",
    rows,
    memory: [],
    targets: [],
  });
  const shown = table
    .split("\n")
    .filter((line) => /millwright|floor/.test(line))
    .map((line) => line.trim().split(/ {2,}/).join("|"));
  expect(shown).toEqual([
    "read a run, one at a time|millwright|standalone|300",
    "floor|standalone|400|0.75",
    "millwright|processes|100",
    "floor|processes|400|0.25",
    "other|millwright|standalone|1",
  ]);
  expect(table).toContain("Not measured: feed on processes.");
  expect([...chartOf(rows).matchAll(/end">([^<]*)<.*?(\d+)\/s/g)].map(([, label, rate]) => `${label} ${rate}`)).toEqual(
    [
      "read a run, one at a time · millwright 300",
      "read a run, one at a time · floor 400",
      "read a run, one at a time · millwright, processes 100",
      "read a run, one at a time · floor, processes 400",
      "other · millwright 1",
    ],
  );
});

test("targets are evaluated for the standalone platform", () => {
  expect(evaluateTargets(rows, [{ on: "processes", name: "gateway", residentMb: 900 }])).toEqual([
    { name: "read a run, one at a time, against floor", wanted: "≥ 0.5", measured: "0.75", isMet: true },
  ]);
});

test("deliveries have a target of half the floor, 16 and 64 at a time", () => {
  const delivered = (what: string, ours: number): Row => ({
    on: "standalone",
    what: `deliver ${what} at a time`,
    who: "floor",
    ours,
  });
  const targets = evaluateTargets(
    [
      delivered("1 KB to webhooks, 16", 0.4),
      delivered("1 KB to webhooks, 64", 0.6),
      delivered("64 KB to webhooks, 16", 0.7),
    ],
    [],
  );
  expect(targets.map(({ name, isMet }) => [name, isMet])).toEqual([
    ["deliver 1 KB to webhooks, 16 at a time, against floor", false],
    ["deliver 1 KB to webhooks, 64 at a time, against floor", true],
    ["deliver 64 KB to webhooks, 16 at a time, against floor", true],
  ]);
});

test("work is abandoned at the deadline, and no further work starts", async () => {
  const deadline = new Deadline(5);
  await expect(deadline.within(() => new Promise(() => {}))).rejects.toThrow(OutOfTime);
  let hasBegun = false;
  await expect(deadline.within(async () => void (hasBegun = true))).rejects.toThrow(OutOfTime);
  expect(hasBegun).toBe(false);
});
