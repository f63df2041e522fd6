import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Caller } from "@millwright/caller";
import type { metrics } from "@millwright/contracts";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { domainError } from "@millwright/testing";
import { CostFacts } from "./cost-rows.ts";
import { OWNER, RUN_VIEWER, startWorld, STRANGER, TEAM, type World } from "./setup.ts";

let world: World;
let facts: CostFacts;
beforeAll(async () => void (world = await startWorld()));
beforeEach(async () => {
  await world.reset();
  facts = new CostFacts(world);
});
afterAll(() => world.stop());

type RangeInit = { start?: string; end?: string; groupByPeriod?: string; factoryUid?: string };

const rangeOf = ({ start, end, factoryUid = facts.factoryUid, groupByPeriod = "" }: RangeInit) => ({
  factoryUid,
  groupByPeriod,
  startDate: start === undefined ? undefined : timestampFromDate(new Date(start)),
  endDate: end === undefined ? undefined : timestampFromDate(new Date(end)),
});
const perPullRequest = (range: RangeInit = {}, caller: Caller = OWNER) =>
  world.metrics.getCostPerPullRequest({ range: rangeOf(range) }, call(caller));
const bySize = (range: RangeInit = {}, caller: Caller = OWNER) =>
  world.metrics.getCostBySize({ range: rangeOf(range) }, call(caller));
const costliest = ({ limit = 0, ...range }: RangeInit & { limit?: number } = {}, caller: Caller = OWNER) =>
  world.metrics.listCostliestPullRequests({ range: rangeOf(range), limit }, call(caller));

const microsOf = (spend: metrics.Spend | undefined): number[] =>
  [spend!.inferenceMicros, spend!.computeMicros, spend!.platformMicros].map(Number);
const costOf = (cost: metrics.PullRequestCost | undefined) => [Number(cost!.prCount), ...microsOf(cost!.spend)];
const urlsOf = ({ data }: metrics.ListCostliestPullRequestsResponse): string[] =>
  data.map(({ pullRequest }) => pullRequest!.url);

test("gives a pull request the cost of the whole tree of a run that produced it, whenever it was spent", async () => {
  const root = facts.run();
  const child = facts.run({}, root);
  facts.produce(child, 1);
  facts.spend(root, "inference", 5, { at: "2026-01-01T00:00:00.000Z" });
  facts.spend(child, "compute", 7);
  facts.spend(facts.run({}, child), "platform", 11);
  await facts.store();
  expect(costOf((await perPullRequest()).cost)).toEqual([1, 5, 7, 11]);
});

test("leaves trees without a pull request out of every figure per pull request", async () => {
  facts.spend(facts.run(), "compute", 1_000);
  await facts.store();
  expect(costOf((await perPullRequest()).cost)).toEqual([0, 0, 0, 0]);
  expect((await costliest()).data).toEqual([]);
  expect((await bySize()).prCount).toBe(0n);
});

test("splits a tree evenly over its pull requests, also those outside of the range; the first by URL carry the remainder", async () => {
  const root = facts.run();
  facts.produce(root, 1, { at: "2026-09-01T00:00:00.000Z" });
  facts.produce(facts.run({}, root), 2);
  facts.produce(root, 3);
  facts.spend(root, "compute", 11);
  await facts.store();
  expect(costOf((await perPullRequest()).cost)).toEqual([2, 0, 7, 0]);
  expect((await costliest()).data.map(({ pullRequest, spend }) => [pullRequest!.prNumber, microsOf(spend)[1]])).toEqual(
    [
      [2, 4],
      [3, 3],
    ],
  );
  expect(costOf((await perPullRequest({ start: "2026-09-01T00:00:00Z", end: "2026-09-02T00:00:00Z" })).cost)).toEqual([
    1, 0, 4, 0,
  ]);
});

test("gives a pull request of several trees a share of each, and counts it once, when it was first seen", async () => {
  const [first, second] = [facts.run(), facts.run()];
  facts.produce(first, 1, { at: "2026-11-10T00:00:00.000Z" });
  facts.produce(second, 1, { at: "2026-11-12T00:00:00.000Z" });
  facts.produce(second, 2, { at: "2026-11-12T00:00:00.000Z" });
  facts.spend(first, "inference", 10);
  facts.spend(second, "inference", 100);
  await facts.store();
  const { scope, series } = await perPullRequest({
    start: "2026-11-10T00:00:00Z",
    end: "2026-11-13T00:00:00Z",
    groupByPeriod: "day",
  });
  expect(scope!.periodList).toEqual(["2026-11-10", "2026-11-11", "2026-11-12"]);
  expect(series.map(costOf)).toEqual([
    [1, 60, 0, 0],
    [0, 0, 0, 0],
    [1, 50, 0, 0],
  ]);
});

test("includes the start of a range and excludes its end", async () => {
  const times = [
    "2026-11-10T05:59:59.999Z",
    "2026-11-10T06:00:00.000Z",
    "2026-11-12T05:59:59.999Z",
    "2026-11-12T06:00:00.000Z",
  ];
  for (const [index, at] of times.entries()) {
    const run = facts.run();
    facts.produce(run, index, { at });
    facts.spend(run, "compute", 10 ** index);
  }
  await facts.store();
  const { cost, series } = await perPullRequest({
    start: "2026-11-10T06:00:00Z",
    end: "2026-11-12T06:00:00Z",
    groupByPeriod: "month",
  });
  expect([cost, ...series].map(costOf)).toEqual([
    [2, 0, 110, 0],
    [2, 0, 110, 0],
  ]);
});

test("counts no pull request of another factory", async () => {
  const other = new CostFacts(world);
  const run = other.run();
  other.produce(run, 1);
  other.spend(run, "compute", 1_000);
  await other.store();
  expect((await perPullRequest()).cost!.prCount).toBe(0n);
});

test.each([
  [0, 0],
  [99, 0],
  [100, 1],
  [499, 1],
  [500, 2],
  [999, 2],
  [1_000, 3],
  [4_000_000_001, 3],
])("puts %d changed lines into the bucket with index %d of S, M, L and XL", async (lines, bucket) => {
  const run = facts.run();
  facts.produce(run, 1, { additions: Math.floor(lines / 2), deletions: Math.ceil(lines / 2) });
  facts.spend(run, "platform", 9);
  await facts.store();
  const { buckets } = await bySize();
  expect(buckets.map(({ size }) => size)).toEqual(["S", "M", "L", "XL"]);
  expect(buckets.map(({ cost }) => costOf(cost))).toEqual(
    [0, 1, 2, 3].map((index) => (index === bucket ? [1, 0, 0, 9] : [0, 0, 0, 0])),
  );
});

test("counts pull requests of unknown size, but puts them into no bucket", async () => {
  for (const [number, [additions, deletions]] of (
    [
      [null, null],
      [10, null],
      [null, 10],
      [1, 1],
    ] as const
  ).entries()) {
    const run = facts.run();
    facts.produce(run, number, { additions, deletions });
    facts.spend(run, "compute", 10 ** number);
  }
  await facts.store();
  const { prCount, sizedPrCount, buckets } = await bySize();
  expect([prCount, sizedPrCount, buckets.map(({ cost }) => costOf(cost)).filter(([count]) => count !== 0)]).toEqual([
    4n,
    1n,
    [[1, 0, 1_000, 0]],
  ]);
});

test("returns all four sizes with one entry per period where there is no pull request", async () => {
  const { prCount, sizedPrCount, buckets } = await bySize({
    start: "2026-11-01T00:00:00Z",
    end: "2026-11-03T00:00:00Z",
    groupByPeriod: "day",
  });
  expect([prCount, sizedPrCount]).toEqual([0n, 0n]);
  const nothing = [
    [0, 0, 0, 0],
    [0, 0, 0, 0],
  ];
  expect(buckets.map(({ size, series }) => [size, series.map(costOf)])).toEqual(
    ["S", "M", "L", "XL"].map((size) => [size, nothing]),
  );
});

test("lists the costliest pull requests first, ties by URL, and those that cost nothing as well", async () => {
  for (const [number, micros] of [
    [5, 10],
    [4, 10],
    [3, 500],
    [2, 0],
    [11, 10],
  ] as const) {
    const run = facts.run();
    facts.produce(run, number);
    facts.spend(run, "compute", micros);
  }
  await facts.store();
  expect((await costliest()).data.map(({ pullRequest }) => pullRequest!.prNumber)).toEqual([3, 11, 4, 5, 2]);
  expect((await costliest({ limit: 2 })).data).toHaveLength(2);
});

test("lists 20 pull requests unless a limit is given, and 50 at most", async () => {
  for (let number = 0; number < 55; number++) facts.produce(facts.run(), number);
  await facts.store();
  const lengths = [0, 1, 50].map(async (limit) => (await costliest({ limit })).data.length);
  expect(await Promise.all(lengths)).toEqual([20, 1, 50]);
});

test.each([-1, 51, 2_147_483_647])("refuses the limit %d", async (limit) => {
  const refused = costliest({ limit });
  await expect(refused).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "limit_invalid" }));
  await expect(refused).rejects.toThrow(`limit must be between 1 and 50 (got ${limit}).`);
});

test("splits the inference of a pull request by configured model, exactly to the micro-dollar", async () => {
  const [first, second] = [facts.run({ model_id: "large" }), facts.run({ model_id: "" })];
  facts.spend(first, "inference", 10);
  facts.spend(facts.run({ model_id: "small" }, first), "inference", 10);
  facts.spend(facts.run({ model_id: "tiny" }, first), "inference", 10);
  facts.spend(first, "compute", 1_000);
  facts.spend(second, "inference", 5);
  for (const number of [1, 2, 3, 4]) facts.produce(first, number);
  facts.produce(second, 4);
  await facts.store();
  const { data } = await costliest();
  const models = (number: number) => {
    const { spend, models: found } = data.find(({ pullRequest }) => pullRequest!.prNumber === number)!;
    expect(found.reduce((sum, { inferenceMicros }) => sum + inferenceMicros, 0n)).toBe(spend!.inferenceMicros);
    return found.map(({ modelId, inferenceMicros }) => [modelId, Number(inferenceMicros)]);
  };
  // 30 over four: 8, 8, 7, 7; of each model 2.5.
  expect(models(1)).toEqual([
    ["large", 3],
    ["small", 3],
    ["tiny", 2],
  ]);
  expect(models(3)).toEqual([
    ["large", 3],
    ["small", 2],
    ["tiny", 2],
  ]);
  expect(models(4)).toEqual([
    ["", 5],
    ["large", 3],
    ["small", 2],
    ["tiny", 2],
  ]);
});

test("leaves models without spend out", async () => {
  const run = facts.run();
  facts.spend(run, "inference", null);
  facts.spend(run, "compute", 5);
  facts.produce(run, 1);
  await facts.store();
  expect((await costliest()).data[0]!.models).toEqual([]);
});

test("names creator, source and configured model of the kickoff run", async () => {
  const ann = newUid();
  const photoUrl = "https://photos.test/ann";
  world.identity.profiles.set(ann, { uid: ann, type: "user", displayName: "Ann", photoUrl, teamUids: [TEAM] });
  const later = facts.run({
    created_at: "2026-11-18T09:00:00.001Z",
    source: "SCHEDULED",
    creator_uid: newUid(),
    model_id: "small",
  });
  const kickoff = facts.run({
    created_at: "2026-11-18T09:00:00.000Z",
    source: "WEBHOOK",
    creator_uid: ann,
    model_id: "large",
  });
  facts.produce(later, 1, { at: "2026-11-18T10:00:00.000Z" });
  facts.produce(kickoff, 1, { at: "2026-11-18T11:00:00.000Z" });
  await facts.store();
  const [row] = (await costliest()).data;
  expect(row).toMatchObject({
    source: "WEBHOOK",
    requestedModelId: "large",
    creator: { type: "user", uid: ann, displayName: "Ann", photoUrl },
  });
  expect(timestampDate(row!.pullRequest!.firstSeenAt!)).toEqual(new Date("2026-11-18T10:00:00.000Z"));
});

test("lists a pull request without a creator, and one whose creator's name is not available", async () => {
  world.identity.isFailing = true;
  const ann = newUid();
  facts.produce(facts.run({ creator_type: "", creator_uid: "" }), 1);
  facts.produce(facts.run({ creator_type: "agent", creator_uid: ann }), 2);
  await facts.store();
  const { data } = await costliest();
  expect(data[0]!.creator).toBeUndefined();
  expect(data[1]!.creator).toMatchObject({ type: "service_account", uid: ann, displayName: ann });
});

test("lists a pull request that no code host has reported without its details", async () => {
  const url = facts.produce(facts.run(), 1);
  await facts.store();
  const { data } = await costliest();
  expect(urlsOf(await costliest())).toEqual([url]);
  expect(data[0]!.pullRequest).toMatchObject({ prNumber: 1, state: "open", historyComplete: false });
  for (const detail of [
    "openedAt",
    "mergedAt",
    "authorLogin",
    "additions",
    "humanInteractions",
    "humanCodeChange",
  ] as const)
    expect(data[0]!.pullRequest![detail]).toBeUndefined();
});

test.each<[string, (range: RangeInit, caller?: Caller) => Promise<unknown>]>([
  ["costs per pull request", perPullRequest],
  ["costs by size", bySize],
  ["the costliest pull requests", costliest],
])("returns the same error to non-members for %s of an existing and of an absent factory", async (_what, ask) => {
  const errorOf = (answer: Promise<unknown>): Promise<Error> =>
    answer.then(
      () => new Error("answered"),
      (error: Error) => error,
    );
  const hidden = await errorOf(ask({}, STRANGER));
  const absent = await errorOf(ask({ factoryUid: newUid() }));
  expect(hidden).toEqual(domainError({ kind: "not_found", reason: "factory_not_found" }));
  expect([hidden.message, JSON.stringify(hidden)]).toEqual([absent.message, JSON.stringify(absent)]);
  await expect(ask({}, RUN_VIEWER)).rejects.toEqual(domainError({ kind: "permission_denied" }));
  await expect(ask({ start: "2026-11-02T00:00:00Z", end: "2026-11-01T00:00:00Z" })).rejects.toEqual(
    domainError({ reason: "date_range_invalid" }),
  );
});
