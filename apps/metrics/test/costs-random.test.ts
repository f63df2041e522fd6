import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { metrics } from "@millwright/contracts";
import { call } from "@millwright/rpc";
import { seededRandom } from "@millwright/testing";
import { randomHistory, someTime } from "./cost-history.ts";
import {
  addTo,
  coverageOf,
  firstSeenIn,
  labelOf,
  labelsOf,
  noMicros,
  pullRequests,
  readRawFacts,
  sizeOf,
  spendByGroup,
  sumOf,
  treeSpend,
  type Micros,
  type PullRequestFacts,
  type RawFacts,
} from "./recompute-costs.ts";
import { OWNER, startWorld, type World } from "./setup.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());

const UNITS = ["day", "week", "month"];
const RANGES = 6;
const first = Number(process.env["MILLWRIGHT_SEED"] ?? Date.now() % 1_000_000);
const seeds = [first, first + 1, first + 2];

const toMicros = (spend: metrics.Spend | undefined): Micros => {
  const { inferenceMicros, computeMicros, platformMicros } = spend!;
  return { inference: inferenceMicros, compute: computeMicros, platform: platformMicros };
};
const toCost = (cost: metrics.PullRequestCost | undefined) => [Number(cost!.prCount), toMicros(cost!.spend)];
const costOf = (found: readonly PullRequestFacts[]) => {
  const spend = noMicros();
  for (const each of found) addTo(spend, each.spend);
  return [found.length, spend];
};

describe.each(seeds)("costs of a random history equal those computed from its facts (MILLWRIGHT_SEED=%d)", (seed) => {
  let facts: RawFacts;
  let all: PullRequestFacts[];
  let factoryUid: string;
  let ranges: { start: Date; end: Date; unit: string }[];
  beforeAll(async () => {
    await world.reset();
    const random = seededRandom(seed);
    await randomHistory(world, random); // another factory
    ({ factoryUid } = await randomHistory(world, random));
    facts = await readRawFacts(world, factoryUid);
    all = pullRequests(facts);
    ranges = Array.from({ length: RANGES }, (_, index) => {
      const [start, end] = [someTime(random), someTime(random)].toSorted((a, b) => Number(a) - Number(b));
      return {
        start: start!,
        end: new Date(Math.max(end!.getTime(), start!.getTime() + 1)),
        unit: UNITS[index % UNITS.length]!,
      };
    });
  });
  const rangeOf = ({ start, end, unit }: (typeof ranges)[number]) => ({
    factoryUid,
    startDate: timestampFromDate(start),
    endDate: timestampFromDate(end),
    groupByPeriod: unit,
  });

  const seriesOf = (found: readonly PullRequestFacts[], { start, end, unit }: (typeof ranges)[number]) =>
    labelsOf(start, end, unit).map((label) =>
      costOf(found.filter(({ firstSeenAt }) => labelOf(firstSeenAt, unit) === label)),
    );

  test.each(["source", "user", "agent", "model"])("grouped by %s", async (groupBy) => {
    for (const range of ranges) {
      const { start, end, unit } = range;
      const answer = await world.metrics.getCostBreakdown({ range: rangeOf(range), groupBy }, call(OWNER));
      const labels = labelsOf(start, end, unit);
      const expected = [...spendByGroup(facts, groupBy, start, end, unit)];
      const total = noMicros();
      for (const [, { spend }] of expected) addTo(total, spend);
      const totalSeries = labels.map((label) => {
        const sum = noMicros();
        for (const [, { periods }] of expected) addTo(sum, periods.get(label) ?? noMicros());
        return sum;
      });
      const listed = expected
        .filter(([, { spend }]) => Object.values(spend).some((micros) => micros !== 0n))
        .toSorted(
          ([a, { spend: x }], [b, { spend: y }]) =>
            Number(a === "UNKNOWN") - Number(b === "UNKNOWN") || Number(sumOf(y) - sumOf(x)) || (a < b ? -1 : 1),
        );
      expect(answer.scope!.periodList).toEqual(labels);
      expect(toMicros(answer.total)).toEqual(total);
      expect(answer.totalSeries.map(toMicros)).toEqual(totalSeries);
      expect(answer.groups.map(({ key, spend, series }) => [key, toMicros(spend), series.map(toMicros)])).toEqual(
        listed.map(([key, { spend, periods }]) => [
          key,
          spend,
          labels.map((label) => periods.get(label) ?? noMicros()),
        ]),
      );
      const { modelCalls, pricedModelCalls, computeIntervals, pricedComputeIntervals } = answer.coverage!;
      expect([modelCalls, pricedModelCalls, computeIntervals, pricedComputeIntervals]).toEqual(
        coverageOf(facts, start, end),
      );
    }
  });

  test("per pull request", async () => {
    expect(all.length).toBeGreaterThan(5);
    for (const range of ranges) {
      const found = firstSeenIn(all, range.start, range.end);
      const { cost, series } = await world.metrics.getCostPerPullRequest({ range: rangeOf(range) }, call(OWNER));
      expect(toCost(cost)).toEqual(costOf(found));
      expect(series.map(toCost)).toEqual(seriesOf(found, range));
    }
  });

  test("by size", async () => {
    for (const range of ranges) {
      const found = firstSeenIn(all, range.start, range.end);
      const { prCount, sizedPrCount, buckets } = await world.metrics.getCostBySize(
        { range: rangeOf(range) },
        call(OWNER),
      );
      expect([prCount, sizedPrCount].map(Number)).toEqual([
        found.length,
        found.filter(({ lines }) => lines !== null).length,
      ]);
      expect(buckets.map(({ size, cost, series }) => [size, toCost(cost), series.map(toCost)])).toEqual(
        ["S", "M", "L", "XL"].map((size) => {
          const ofSize = found.filter((each) => sizeOf(each) === size);
          return [size, costOf(ofSize), seriesOf(ofSize, range)];
        }),
      );
    }
  });

  test("of the costliest pull requests", async () => {
    for (const range of ranges) {
      const found = firstSeenIn(all, range.start, range.end).toSorted(
        (a, b) => Number(sumOf(b.spend) - sumOf(a.spend)) || (a.url < b.url ? -1 : 1),
      );
      const { data } = await world.metrics.listCostliestPullRequests(
        { range: { ...rangeOf(range), groupByPeriod: "" }, limit: 10 },
        call(OWNER),
      );
      expect(
        data.map((row) => [row.pullRequest!.url.toLowerCase(), toMicros(row.spend), row.source, row.requestedModelId]),
      ).toEqual(
        found.slice(0, 10).map(({ url, spend, kickoff }) => [`https://${url}`, spend, kickoff.source, kickoff.model]),
      );
      for (const [index, { models, spend }] of data.entries()) {
        expect(models.reduce((sum, { inferenceMicros }) => sum + inferenceMicros, 0n)).toBe(spend!.inferenceMicros);
        // Each share of a tree is rounded once per model.
        for (const [model, micros] of found[index]!.models)
          expect(
            Math.abs(Number(models.find(({ modelId }) => modelId === model)?.inferenceMicros ?? 0n) - micros),
          ).toBeLessThan(10);
      }
    }
  });

  test("of all pull requests and of trees without one add up to the ledger", async () => {
    const everything = { start: new Date("2026-01-01T00:00:00Z"), end: new Date("2027-01-01T00:00:00Z"), unit: "" };
    const { cost } = await world.metrics.getCostPerPullRequest({ range: rangeOf(everything) }, call(OWNER));
    const sum = toMicros(cost!.spend);
    const attributed = new Set(facts.produced.map(({ root }) => root));
    for (const root of new Set([...facts.runs.values()].map((run) => run.root)))
      if (!attributed.has(root)) addTo(sum, treeSpend(facts, root));
    const LEDGER = "SELECT sum(micros)::text AS micros FROM ledger_entries WHERE factory_uid = $1";
    const [ledger] = await world.rows<{ micros: string }>(LEDGER, [factoryUid]);
    expect(sumOf(sum)).toBe(BigInt(ledger!.micros));
    const { total } = await world.metrics.getCostBreakdown(
      { range: rangeOf(everything), groupBy: "source" },
      call(OWNER),
    );
    expect(sumOf(toMicros(total))).toBe(BigInt(ledger!.micros));
  });
});
