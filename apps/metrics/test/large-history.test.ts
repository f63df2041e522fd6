import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { metrics } from "@millwright/contracts";
import { call } from "@millwright/rpc";
import { seededRandom } from "@millwright/testing";
import { rebuildReadModels } from "../src/usecases/rebuild-read-models.ts";
import { AFTER_HISTORY, BEFORE_HISTORY, ingest, largeHistory } from "./large-history.ts";
import { PRICE, storeRaw } from "./raw-history.ts";
import { OWNER, startWorld, type World } from "./setup.ts";

const SEED = Number(process.env["MILLWRIGHT_SEED"] ?? Date.now() % 1_000_000);
const EVENTS = 100_000;

/** Whole history by month, and a part of it that begins and ends within a day. */
const RANGES = [
  { start: BEFORE_HISTORY, end: AFTER_HISTORY, unit: "month" },
  { start: new Date("2026-09-09T07:30:00.001Z"), end: new Date("2026-11-03T16:45:00Z"), unit: "week" },
  { start: new Date("2026-10-01T00:00:00Z"), end: new Date("2026-10-20T12:00:00Z"), unit: "day" },
];
type Range = (typeof RANGES)[number];

let world: World;
let factoryUid: string;
let events: number;
beforeAll(async () => {
  world = await startWorld();
  world.clock.set(AFTER_HISTORY);
  await world.rows("INSERT INTO compute_prices VALUES (2, $1, $2, $3, $4)", [
    PRICE.vcpuHour,
    PRICE.gbHour,
    PRICE.run,
    PRICE.from,
  ]);
  const factoryUids = [world.aFactory(), world.aFactory()];
  factoryUid = factoryUids[0]!;
  const history = largeHistory(SEED, EVENTS, factoryUids);
  events = history.events;
  await ingest(world, seededRandom(SEED + 1), history);
  await storeRaw(world, history);
});
afterAll(() => world.stop());

const rangeOf = ({ start, end, unit }: Range) => ({
  factoryUid,
  startDate: timestampFromDate(start),
  endDate: timestampFromDate(end),
  groupByPeriod: unit,
});

const PERIODS: Readonly<Record<string, string>> = {
  day: "date_trunc('day', at AT TIME ZONE 'UTC')",
  week: "date_trunc('week', at AT TIME ZONE 'UTC' + interval '1 day') - interval '1 day'",
  month: "date_trunc('month', at AT TIME ZONE 'UTC')",
};

type Values = readonly (number | null)[];
/** `total`: of the whole range; `none`: what a period without rows has. */
type Slices = { readonly total: Values; readonly of: ReadonlyMap<string, Values>; readonly none: Values };

/**
 * Aggregates rows with a time `at`, over the whole range and per period. `columns`: aggregates, in the order of the
 * values.
 */
async function slices(rows: string, columns: readonly string[], range: Range, none: Values): Promise<Slices> {
  const found = await world.rows<{ period: string | null; values: (number | null)[] }>(
    `SELECT period, ARRAY[${columns.map((column) => `(${column})::float8`).join(", ")}] AS values
       FROM (SELECT *, to_char(${PERIODS[range.unit]}, 'YYYY-MM-DD') AS period
               FROM (${rows}) all_rows
              WHERE at >= $1 AND at < $2) r
      GROUP BY GROUPING SETS ((), (period))`,
    [range.start, range.end],
  );
  const total = found.find(({ period }) => period === null)?.values ?? none;
  return { total, of: new Map(found.map(({ period, values }) => [period ?? "", values])), none };
}

const seriesOf = ({ of, none }: Slices, scope: metrics.Scope | undefined): Values[] =>
  scope!.periodList.map((period) => of.get(period) ?? none);

/** Checks the value of the whole range and those of its periods. */
function expectSlices(expected: Slices, scope: metrics.Scope | undefined, total: Values, series: readonly Values[]) {
  expect(total).toEqual(expected.total);
  expect(series).toEqual(seriesOf(expected, scope));
}

const ours = (table: string): string => `SELECT * FROM raw.${table} WHERE factory = '${factoryUid}'`;
const recordsAt = (time: string, condition = "true"): string =>
  `SELECT *, ${time} AS at FROM raw.records WHERE factory = '${factoryUid}' AND ${condition}`;
/** Values within 5 ms or 0.005: means and medians differ by rounding in their last digit. */
const near = (values: Values): unknown[] => values.map((value) => (value === null ? null : expect.closeTo(value, 2)));

/** Rows per group, by key. */
const keysOf = async (rows: string, { start, end }: Range): Promise<string[]> =>
  (
    await world.rows<{ key: string }>(`SELECT DISTINCT key FROM (${rows}) r WHERE at >= $1 AND at < $2 ORDER BY key`, [
      start,
      end,
    ])
  ).map(({ key }) => key);

describe.each(RANGES)(`after ${EVENTS} events (MILLWRIGHT_SEED=${SEED}), $start to $end by $unit,`, (range) => {
  const RUN_KEYS: Readonly<Record<string, string>> = {
    agent_type: "CASE WHEN source = 'SELF_IMPROVEMENT' THEN source ELSE agent_type END",
    status: "state",
    source: "source",
    root_vs_subrun: "CASE WHEN parent IS NULL THEN 'ROOT' ELSE 'SUBRUN' END",
    model: "model",
    harness: "harness",
  };
  test.each(Object.entries(RUN_KEYS))("runs by %s are those of plain SQL", async (groupBy, key) => {
    const counted = groupBy === "source" ? "AND parent IS NULL" : "";
    const rows = `SELECT at, coalesce(nullif(${key}, ''), 'UNKNOWN') AS key FROM (${ours("runs")}) r WHERE true ${counted}`;
    const answer = await world.metrics.getRunBreakdown({ range: rangeOf(range), groupBy }, call(OWNER));
    expectSlices(
      await slices(rows, ["count(*)"], range, [0]),
      answer.scope,
      [Number(answer.total!.total)],
      answer.total!.series.map((count) => [Number(count)]),
    );
    expect(answer.groups.map((group) => group.key).toSorted()).toEqual(await keysOf(rows, range));
    for (const group of answer.groups)
      expectSlices(
        await slices(`SELECT * FROM (${rows}) g WHERE key = '${group.key}'`, ["count(*)"], range, [0]),
        answer.scope,
        [Number(group.total)],
        group.series.map((count) => [Number(count)]),
      );
  });

  test("metrics are those of plain SQL", async () => {
    const answer = await world.metrics.getMetrics({ range: rangeOf(range) }, call(OWNER));
    const { scope } = answer;
    const count = async (rows: string, found: metrics.Count | undefined) =>
      expectSlices(
        await slices(rows, ["count(*)"], range, [0]),
        scope,
        [Number(found!.total)],
        found!.series.map((each) => [Number(each)]),
      );
    await count(ours("runs"), answer.runCount);
    await count(recordsAt("first_seen_at"), answer.prCount);
    await count(recordsAt("coalesce(opened_at, merged_at)", "merged_at IS NOT NULL"), answer.mergedPrCount);

    const interactions = await slices(recordsAt("opened_at"), ["avg(human)"], range, [null]);
    const { mean, series } = answer.averageHumanInteractionsPerPr!;
    expect([mean!.value ?? null]).toEqual(near(interactions.total.slice(0, 1)));
    expect(series.map(({ value }) => [value ?? null])).toEqual(seriesOf(interactions, scope).map(near));

    const funnel = await slices(
      `SELECT h.merged_at AS at, r.url IS NOT NULL AS ours, r.is_complete, r.human_change
         FROM raw.hosts h
         LEFT JOIN (${ours("records")}) r USING (url)`,
      [
        "count(*)",
        "count(*) FILTER (WHERE ours)",
        "count(*) FILTER (WHERE ours AND is_complete)",
        "count(*) FILTER (WHERE ours AND is_complete AND NOT human_change)",
      ],
      range,
      [0, 0, 0, 0],
    );
    const funnelValues = (each: metrics.AutonomyFunnel): Values =>
      [each.totalMerged, each.factoryMerged, each.factoryMergedObserved, each.mergedWithoutHumanCodeChange].map(Number);
    expectSlices(funnel, scope, funnelValues(answer.autonomyFunnel!), answer.autonomyFunnelSeries.map(funnelValues));

    const impact = await slices(
      recordsAt("merged_at"),
      ["coalesce(sum(additions), 0)", "coalesce(sum(deletions), 0)", "count(*)", "count(additions)"],
      range,
      [0, 0, 0, 0],
    );
    const impactValues = (each: metrics.Impact): Values =>
      [each.additions, each.deletions, each.mergedPrCount, each.measuredPrCount].map(Number);
    expectSlices(impact, scope, impactValues(answer.impact!), answer.impactSeries.map(impactValues));

    const stage = (from: string, to: string): string[] => {
      const seconds = `CASE WHEN ${to} >= ${from} THEN extract(epoch FROM ${to} - ${from})::float8 END`;
      return [`percentile_cont(0.5) WITHIN GROUP (ORDER BY ${seconds})`, `count(${seconds})`];
    };
    const latency = await slices(
      recordsAt("merged_at"),
      [
        ...stage("kickoff_at", "opened_at"),
        ...stage("opened_at", "reviewed_at"),
        ...stage("reviewed_at", "merged_at"),
        ...stage("kickoff_at", "merged_at"),
      ],
      range,
      [null, 0, null, 0, null, 0, null, 0],
    );
    const latencyValues = (each: metrics.PullRequestLatency): Values =>
      [each.kickoffToPr, each.prToFirstReview, each.firstReviewToMerge, each.kickoffToMerge].flatMap((found) => [
        found!.medianSeconds ?? null,
        Number(found!.measuredPrCount),
      ]);
    expect(latencyValues(answer.prLatency!)).toEqual(near(latency.total));
    expect(answer.prLatencySeries.map(latencyValues)).toEqual(seriesOf(latency, scope).map(near));
  });

  const sumsOf = (value: string): string[] =>
    ["inference", "compute", "platform"].map((component) => value.replaceAll("COMPONENT", component));
  const spendOf = ({ inferenceMicros, computeMicros, platformMicros }: metrics.Spend): Values =>
    [inferenceMicros, computeMicros, platformMicros].map(Number);
  const SPENT = sumsOf("coalesce(sum(micros) FILTER (WHERE component = 'COMPONENT'), 0)");

  test.each(["source", "user", "agent", "model"])("spend by %s is that of plain SQL", async (groupBy) => {
    const column = groupBy === "user" ? "creator" : groupBy;
    const rows = `SELECT *, coalesce(nullif(${column}, ''), 'UNKNOWN') AS key FROM (${ours("costs")}) c`;
    const answer = await world.metrics.getCostBreakdown({ range: rangeOf(range), groupBy }, call(OWNER));
    expectSlices(
      await slices(rows, SPENT, range, [0, 0, 0]),
      answer.scope,
      spendOf(answer.total!),
      answer.totalSeries.map(spendOf),
    );
    expect(answer.groups.map(({ key }) => key).toSorted()).toEqual(
      await keysOf(`SELECT * FROM (${rows}) spent WHERE micros > 0`, range),
    );
    for (const { key, spend, series } of answer.groups)
      expectSlices(
        await slices(`SELECT * FROM (${rows}) g WHERE key = '${key}'`, SPENT, range, [0, 0, 0]),
        answer.scope,
        spendOf(spend!),
        series.map(spendOf),
      );
    const { total: coverage } = await slices(
      rows,
      ["inference", "compute"].flatMap((component) => [
        `count(*) FILTER (WHERE component = '${component}')`,
        `count(micros) FILTER (WHERE component = '${component}')`,
      ]),
      range,
      [0, 0, 0, 0],
    );
    const { modelCalls, pricedModelCalls, computeIntervals, pricedComputeIntervals } = answer.coverage!;
    expect([modelCalls, pricedModelCalls, computeIntervals, pricedComputeIntervals].map(Number)).toEqual(coverage);
  });

  const COSTS = ["count(*)", ...sumsOf("coalesce(sum(COMPONENT), 0)")];
  const costOf = ({ prCount, spend }: metrics.PullRequestCost): Values => [Number(prCount), ...spendOf(spend!)];

  test("costs per pull request are those of plain SQL", async () => {
    const { scope, cost, series } = await world.metrics.getCostPerPullRequest({ range: rangeOf(range) }, call(OWNER));
    const expected = await slices(recordsAt("first_seen_at"), COSTS, range, [0, 0, 0, 0]);
    expect(expected.total[0]).toBeGreaterThan(0);
    expectSlices(expected, scope, costOf(cost!), series.map(costOf));
  });

  test("costs by size are those of plain SQL", async () => {
    const answer = await world.metrics.getCostBySize({ range: rangeOf(range) }, call(OWNER));
    const counts = await slices(recordsAt("first_seen_at"), ["count(*)", "count(additions)"], range, [0, 0]);
    expect([answer.prCount, answer.sizedPrCount].map(Number)).toEqual(counts.total);
    const limits = [0, 100, 500, 1_000, 1_000_000];
    expect(answer.buckets.map(({ size }) => size)).toEqual(["S", "M", "L", "XL"]);
    for (const [index, { cost, series }] of answer.buckets.entries()) {
      const isIn = `additions + deletions >= ${limits[index]} AND additions + deletions < ${limits[index + 1]}`;
      const expected = await slices(recordsAt("first_seen_at", isIn), COSTS, range, [0, 0, 0, 0]);
      expectSlices(expected, answer.scope, costOf(cost!), series.map(costOf));
    }
  });

  test("the costliest pull requests are those of plain SQL", async () => {
    const { data } = await world.metrics.listCostliestPullRequests(
      { range: { ...rangeOf(range), groupByPeriod: "" }, limit: 50 },
      call(OWNER),
    );
    const expected = await world.rows<{ url: string; spend: number[] }>(
      `SELECT 'https://' || url AS url, ARRAY[inference, compute, platform]::float8[] AS spend
         FROM (${recordsAt("first_seen_at")}) r
        WHERE at >= $1 AND at < $2
        ORDER BY inference + compute + platform DESC, url COLLATE "C"
        LIMIT 50`,
      [range.start, range.end],
    );
    expect(data.map(({ pullRequest, spend }) => ({ url: pullRequest!.url, spend: spendOf(spend!) }))).toEqual(expected);
  });
});

test(`after ${EVENTS} events the list of pull requests is that of plain SQL`, async () => {
  const found: metrics.PullRequest[] = [];
  for (let pageToken = ""; ;) {
    const page = await world.metrics.listPullRequests({ factoryUid, pageSize: 100, pageToken }, call(OWNER));
    found.push(...page.data);
    pageToken = page.nextPageToken;
    if (pageToken === "") break;
  }
  const expected = await world.rows(
    `SELECT 'https://' || url AS url, coalesce(state, 'open') AS state, opened_at, merged_at, reviewed_at, additions, deletions,
            human::integer AS human, is_complete, runs, kickoff_at, first_seen_at
       FROM (${ours("records")}) r
      ORDER BY opened_at DESC NULLS LAST, url COLLATE "C"`,
  );
  const dateOf = (time: Parameters<typeof timestampDate>[0] | undefined): Date | null =>
    time ? timestampDate(time) : null;
  expect(
    found.map((each) => ({
      url: each.url,
      state: each.state,
      opened_at: dateOf(each.openedAt),
      merged_at: dateOf(each.mergedAt),
      reviewed_at: dateOf(each.firstHumanReviewAt),
      additions: each.additions ?? null,
      deletions: each.deletions ?? null,
      human: each.humanInteractions?.total ?? null,
      is_complete: each.historyComplete,
      runs: each.runs.length,
      kickoff_at: dateOf(each.kickoffAt),
      first_seen_at: dateOf(each.firstSeenAt),
    })),
  ).toEqual(expected);
  expect(expected.length).toBeGreaterThan(300);
  expect(events).toBeGreaterThanOrEqual(EVENTS);
});

test(`a rebuild after ${EVENTS} events ends with equal responses of every endpoint`, async () => {
  await world.service.ready();
  const pause = async (): Promise<void> => {
    await world.service.work.drain();
    await world.service.refreshDue();
  };
  const rebuilt = await rebuildReadModels({ clock: world.clock, pause, report: () => {} }, world.t.url);
  expect(rebuilt).toMatchObject({ failures: 0, retainedPullRequests: 0, unreadRuns: 0 });
  expect(rebuilt.deliveries).toBeGreaterThan(2_000);
  expect(rebuilt.factories).toHaveLength(2);
  for (const { changed, endpoints } of rebuilt.factories) {
    expect(changed).toEqual([]);
    for (const { before, after } of endpoints) expect(after).toBe(before);
  }
});
