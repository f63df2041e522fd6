import { expect, test } from "@jest/globals";
import { chartOf } from "./chart.ts";
import { costPerOperation } from "./cost.ts";
import { Deadline, OutOfTime } from "./deadline.ts";
import { tableOf } from "./report.ts";
import type { Measured, Row } from "./results.ts";
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

test("the table shows what an operation costs, in total and by process", () => {
  const cost = { cpuUs: { "gateway-0": 310.4, postgres: 95, nats: 0.2 }, walBytes: 3_800, statements: 8.5 };
  const table = tableOf({
    isQuick: true,
    unmeasured: [],
    seconds: 1,
    cores: 2,
    node: "24",
    rows: [{ ...row("processes", "millwright", 100), cost }, row("processes", "floor", 400, 0.25)],
    memory: [],
    targets: [],
  });
  expect(table).toContain("cpu µs  WAL B  stmts");
  expect(table).toMatch(/millwright {2}processes {2} +100 .* 406 {3}3800 {4}8\.5$/m);
  expect(table).toMatch(/^read a run, one at a time +millwright +processes +gateway-0 310\.4 · postgres 95$/m);
  expect(table.match(/floor/g)).toHaveLength(1);
});

test("costs are divided by the operations of all turns", () => {
  const usages = [
    { cpuUs: { platform: 1_000, postgres: 500 }, walBytes: 4_000 },
    { cpuUs: { platform: 3_000, postgres: 1_500 }, walBytes: 8_000 },
  ];
  expect(costPerOperation(usages, 8)).toEqual({ cpuUs: { platform: 500, postgres: 250 }, walBytes: 1_500 });
  expect(costPerOperation(usages, 8, 2.004)).toMatchObject({ statements: 2 });
});

test("standalone is compared with the one-process floor, separate processes with the two-process floor", () => {
  expect(
    evaluateTargets(
      [...rows, row("processes", "two-process floor", 150, 0.55)],
      [{ on: "processes", name: "gateway", residentMb: 950, ownMb: 900 }],
    ),
  ).toEqual([
    {
      on: "standalone",
      name: "read a run, one at a time, against floor",
      wanted: "≥ 0.5",
      measured: "0.75",
      isMet: true,
    },
    {
      on: "processes",
      name: "read a run, one at a time, against two-process floor",
      wanted: "≥ 0.6",
      measured: "0.55",
      isMet: false,
    },
    { on: "processes", name: "idle platform, memory", wanted: "< 700 MB", measured: "900 MB", isMet: false },
  ]);
});

const what = (name: string, who: string, figures: Partial<Row>): Measured => ({ what: name, who, ...figures });
const latencyMs = (p50: number, p99: number) => ({ latencyMs: { count: 100, p50, p95: p99, p99, max: p99 } });

test.each([
  [
    "standalone",
    [
      ["create a run, 16 at a time, against floor", "≥ 0.8", false],
      ["create to claimed at 50 runs/s, p99", "≤ 50 ms", true],
      ["no-op runs finished, against graphile-worker", "≥ 0.5", true],
      ["no-op runs finished, against pg-boss", "≥ 5", false],
      ["10,000 schedules due in the same second, p99", "< 1000 ms", false],
      ["deliver 1 KB to webhooks, 16 at a time, against floor", "≥ 0.6", false],
      ["deliver 1 KB to webhooks, 64 at a time, against floor", "≥ 0.6", true],
      ["deliver 64 KB to webhooks, 16 at a time, against floor", "≥ 0.5", true],
      ["npm start, warm, to ready, p50", "< 2000 ms", true],
    ],
  ],
  [
    "processes",
    [
      ["create a run, 16 at a time, against two-process floor", "≥ 0.6", true],
      ["create to claimed at 50 runs/s, p99", "≤ 50 ms", true],
      ["no-op runs finished, against graphile-worker", "≥ 0.5", true],
      ["no-op runs finished, against pg-boss", "≥ 5", false],
      ["10,000 schedules due in the same second, p99", "< 2000 ms", true],
      ["deliver 1 KB to webhooks, 16 at a time, against floor", "≥ 0.4", true],
      ["deliver 1 KB to webhooks, 64 at a time, against floor", "≥ 0.4", true],
      ["create to claimed at 50 runs/s, p50", "≤ 8 ms", false],
    ],
  ],
] as const)("targets of %s have their own limits", (on, expected) => {
  const measured = [
    what("create a run, 16 at a time", on === "standalone" ? "floor" : "two-process floor", { ours: 0.7 }),
    what("create to claimed, 50 runs/s", "millwright", latencyMs(9, 50)),
    what("no-op runs finished", "graphile-worker", { ours: 0.5 }),
    what("no-op runs finished", "pg-boss", { ours: 4.9 }),
    what("10,000 schedules due in the same second, to committed runs", "millwright", latencyMs(500, 1_000)),
    what("deliver 1 KB to webhooks, 16 at a time", "floor", { ours: 0.5 }),
    what("deliver 1 KB to webhooks, 64 at a time", "floor", { ours: 0.6 }),
    ...(on === "standalone"
      ? [
          what("deliver 64 KB to webhooks, 16 at a time", "floor", { ours: 0.5 }),
          what("npm start, warm, to ready", "millwright", latencyMs(1_900, 2_500)),
        ]
      : []),
  ].map((found): Row => ({ ...found, on }));
  expect(evaluateTargets(measured, []).map(({ name, wanted, isMet }) => [name, wanted, isMet])).toEqual(expected);
});

test("work is abandoned at the deadline, and no further work starts", async () => {
  const deadline = new Deadline(5);
  await expect(deadline.within(() => new Promise(() => {}))).rejects.toThrow(OutOfTime);
  let hasBegun = false;
  await expect(deadline.within(async () => void (hasBegun = true))).rejects.toThrow(OutOfTime);
  expect(hasBegun).toBe(false);
});
