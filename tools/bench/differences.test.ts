import { expect, test } from "@jest/globals";
import { differencesOf, tableOfDifferences } from "./differences.ts";
import type { Results, Row } from "./results.ts";

const results = (...rows: Row[]): Results => ({
  ...{ isQuick: true, unmeasured: [], seconds: 1, cores: 2, node: "24" },
  ...{ rows, memory: [], targets: [] },
});
const read = (perSecond: number, figures: Partial<Row> = {}): Row => ({
  ...{ what: "read a run", who: "millwright", on: "standalone", perSecond },
  ...figures,
});

test("a difference is the median of the ratios of the turns, with the lowest and the highest", () => {
  const turns = [
    { before: results(read(100)), after: results(read(120)) },
    { before: results(read(50)), after: results(read(55)) },
    { before: results(read(200)), after: results(read(180)) },
  ];
  const differences = differencesOf(turns);
  expect(differences).toEqual([
    {
      ...{ what: "read a run", who: "millwright", on: "standalone", figure: "per second" },
      ...{ median: 1.1, range: [0.9, 1.2] },
    },
  ]);
  expect(tableOfDifferences(differences)).toMatch(
    /^read a run +millwright +standalone +per second +1\.1 +0\.9 +1\.2$/m,
  );
});

test("costs and latencies are compared if both revisions have measured them", () => {
  const cost = { cpuUs: { platform: 300, postgres: 100 }, walBytes: 1_000, statements: 2 };
  const latencyMs = { count: 9, p50: 2, p95: 3, p99: 4, max: 5 };
  const after = results(read(100, { cost, latencyMs }));
  const cheaper = { ...cost, cpuUs: { platform: 100, postgres: 100 }, walBytes: 500 };
  const differences = differencesOf([{ before: results(read(100, { cost: cheaper, latencyMs })), after }]);
  expect(differences.map(({ figure, median }) => [figure, median])).toEqual([
    ["per second", 1],
    ["p50 ms", 1],
    ["p99 ms", 1],
    ["cpu µs", 2],
    ["WAL bytes", 2],
    ["statements", 1],
  ]);
  expect(differencesOf([{ before: results(read(100)), after }]).map(({ figure }) => figure)).toEqual(["per second"]);
});

test("a figure of 0 has no ratio, and the figures of a row stay together", () => {
  const withWal = (walBytes: number): Results =>
    results(read(1, { cost: { cpuUs: { platform: 100 }, walBytes } }), read(1, { who: "floor" }));
  const turns = [
    { before: withWal(0), after: withWal(5) },
    { before: withWal(10), after: withWal(20) },
  ];
  expect(differencesOf(turns).map(({ who, figure, median }) => [who, figure, median])).toEqual([
    ["millwright", "per second", 1],
    ["millwright", "cpu µs", 1],
    ["millwright", "WAL bytes", 2],
    ["floor", "per second", 1],
  ]);
});

test("rows of one revision only, and of another setup, are left out", () => {
  const after = results(read(1, { on: "processes" }), read(1, { who: "two-process floor" }));
  expect(differencesOf([{ before: results(read(1)), after }])).toEqual([]);
});
