import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import {
  COSTED,
  costed,
  COSTS,
  dollars,
  NO_DOLLARS,
  OVERALL,
  RANGED,
  SCOPE,
  spend,
  unreported,
  UNREPORTED,
  WEEKLY,
  WEEKS,
} from "./support/metrics.ts";
import { at, FACTORY } from "./support/records.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const asked = (method: string) => api.calls.find((call) => call.method === method)!.request;
const get = (path: string, headers = {}) => api.call("GET", `${COSTS}${path}`, { headers });
const badRequests = (path: string, queries: readonly string[]) =>
  testRejectedBeforeUpstreams(
    () => api,
    400,
    queries.map((query) => ["GET", `${COSTS}${path}?${query}`] as const),
  );
const documented = [
  upstreamError("not_found", "factory_not_found"),
  upstreamError("permission_denied", "not_authorized"),
  upstreamError("invalid_argument", "date_range_invalid"),
];
const withPeriods = [...documented, upstreamError("invalid_argument", "too_many_periods")];
const BAD_RANGES = ["start_date=x", "end_date=", "end_date=2026-13-01"];

describe("GET …/costs/per-pr", () => {
  const COST = {
    pr_count: 4,
    dollars: dollars(1, 0.5, 0.000002, 1.500002),
    mean: 0.3750005,
    inference_mean: 0.25,
    compute_mean: 0.125,
    platform_mean: 0.0000005,
  };
  const NO_COST = {
    pr_count: 0,
    dollars: NO_DOLLARS,
    mean: null,
    inference_mean: null,
    compute_mean: null,
    platform_mean: null,
  };
  const cost = { prCount: 4n, spend: spend(1_000_000n, 500_000n, 2n) };
  test("returns dollars of the exact sum and means over all pull requests", async () => {
    api.respondWith({ getCostPerPullRequest: { scope: SCOPE, cost } });
    expect((await get("/per-pr")).body).toEqual({ ...OVERALL, ...COST });
    expect(asked("getCostPerPullRequest").range).toMatchObject({ factoryUid: FACTORY, groupByPeriod: "" });
  });
  test("returns null for the means of no pull requests", async () => {
    api.respondWith({ getCostPerPullRequest: { scope: SCOPE, cost: {} } });
    expect((await get("/per-pr")).body).toEqual({ ...OVERALL, ...NO_COST });
  });
  test("returns the same members per period", async () => {
    api.respondWith({ getCostPerPullRequest: { scope: WEEKS, cost, series: [{}, cost] } });
    expect((await get("/per-pr?group_by_period=week&start_date=2026-11-08")).body).toEqual({
      ...WEEKLY,
      ...COST,
      series: [NO_COST, COST],
    });
    expect(asked("getCostPerPullRequest").range).toMatchObject({
      groupByPeriod: "week",
      startDate: at("2026-11-08T00:00:00Z"),
    });
  });
  test("adds micro-dollars before it makes dollars", async () => {
    api.respondWith({
      getCostPerPullRequest: { scope: SCOPE, cost: { prCount: 1n, spend: spend(100_000n, 200_000n) } },
    });
    expect((await get("/per-pr")).body.dollars.total).toBe(0.3);
  });
  badRequests("/per-pr", [...BAD_RANGES, "group_by_period=hour"]);
  testUpstreamErrors(
    () => api,
    () => get("/per-pr"),
    ["getCostPerPullRequest", ...withPeriods],
  );
});

describe("GET …/costs/breakdown", () => {
  const groups = [
    {
      key: "u1",
      label: "Ada",
      deleted: false,
      photoUrl: "https://p.example/a",
      spend: spend(3_000_000n, 1n),
      series: [spend(0n), spend(3_000_000n, 1n)],
    },
    { key: "u2", label: "+1", deleted: true, spend: spend(1_000_000n), series: [spend(1_000_000n), spend(0n)] },
    { key: "UNKNOWN", label: "", spend: spend(2n), series: [spend(2n), spend(0n)] },
  ];
  const coverage = { modelCalls: 10n, pricedModelCalls: 9n, computeIntervals: 4n, pricedComputeIntervals: 3n };
  const found = {
    groupBy: "user",
    total: spend(4_000_002n, 1n),
    totalSeries: [spend(1_000_002n), spend(3_000_000n, 1n)],
    groups,
    coverage,
  };
  const answer = (scope: object) => api.respondWith({ getCostBreakdown: { ...found, scope } });
  const ADA = {
    key: "u1",
    label: "Ada",
    deleted: false,
    photo_url: "https://p.example/a",
    dollars: dollars(3, 0.000001, 0, 3.000001),
  };
  const BOB = { key: "u2", label: "+1", deleted: true, dollars: dollars(1, 0, 0, 1) };
  const UNKNOWN = { key: "UNKNOWN", label: "UNKNOWN", deleted: false, dollars: dollars(0.000002, 0, 0, 0.000002) };
  const TOTAL = dollars(4.000002, 0.000001, 0, 4.000003);
  const COVERAGE = { model_calls: 10, priced_model_calls: 9, compute_intervals: 4, priced_compute_intervals: 3 };

  test("returns every group in the order of the service, and what the spend is known from", async () => {
    answer(SCOPE);
    expect((await get("/breakdown?group_by=user")).body).toEqual({
      ...OVERALL,
      group_by: "user",
      total: TOTAL,
      groups: [ADA, BOB, UNKNOWN],
      coverage: COVERAGE,
    });
    expect(asked("getCostBreakdown")).toMatchObject({ groupBy: "user", range: { factoryUid: FACTORY } });
  });
  test("returns series of dollars with periods", async () => {
    answer(WEEKS);
    const { body } = await get("/breakdown?group_by=user&group_by_period=week");
    expect(body.total).toEqual({ ...TOTAL, series: [dollars(1.000002, 0, 0, 1.000002), ADA.dollars] });
    expect(body.groups).toEqual([
      { ...ADA, series: [NO_DOLLARS, ADA.dollars] },
      { ...BOB, series: [BOB.dollars, NO_DOLLARS] },
      { ...UNKNOWN, series: [UNKNOWN.dollars, NO_DOLLARS] },
    ]);
  });
  test("is exported as one group per line", async () => {
    answer(SCOPE);
    const lines = (await get("/breakdown?group_by=user", { accept: "application/x-ndjson" })).body.trim().split("\n");
    expect(lines.map((line: string) => JSON.parse(line))).toEqual([ADA, BOB, UNKNOWN]);
    answer(WEEKS);
    expect((await get("/breakdown?group_by=user&group_by_period=week", { accept: "text/csv" })).body).toBe(
      "key,label,deleted,inference_dollars,compute_dollars,platform_dollars,total_dollars,2026-11-08,2026-11-15\r\n" +
        "u1,Ada,false,3,0.000001,0,3.000001,0,3.000001\r\nu2,'+1,true,1,0,0,1,1,0\r\nUNKNOWN,UNKNOWN,false,0.000002,0,0,0.000002,0.000002,0\r\n",
    );
  });
  test("takes each documented dimension", async () => {
    for (const dimension of ["source", "user", "agent", "model"]) {
      answer(SCOPE);
      expect((await get(`/breakdown?group_by=${dimension}`)).status).toBe(200);
      expect(asked("getCostBreakdown").groupBy).toBe(dimension);
    }
  });
  badRequests("/breakdown", [
    "",
    "group_by=",
    "group_by=status",
    "group_by=Model",
    ...BAD_RANGES.map((range) => `group_by=user&${range}`),
    "group_by=user&group_by_period=x",
  ]);
  testUpstreamErrors(
    () => api,
    () => get("/breakdown?group_by=user"),
    ["getCostBreakdown", ...withPeriods, upstreamError("invalid_argument", "group_by_invalid")],
  );
});

describe("GET …/costs/per-pr/top", () => {
  test("returns pull requests with dollars, models whose shares sum to 1, and the kickoff run's creator, source and model", async () => {
    const unknown = { pullRequest: unreported, spend: spend(1n), models: [] };
    api.respondWith({ listCostliestPullRequests: { scope: SCOPE, data: [costed(), unknown] } });
    const { body } = await get("/per-pr/top");
    expect(body).toEqual({
      ...RANGED,
      data: [
        COSTED,
        {
          ...UNREPORTED,
          dollars: dollars(0.000001, 0, 0, 0.000001),
          models: [],
          creator: null,
          source: null,
          requested_model_id: null,
        },
      ],
    });
    expect(asked("listCostliestPullRequests")).toMatchObject({
      limit: 20,
      range: { factoryUid: FACTORY, groupByPeriod: "" },
    });
  });
  test.each([
    ["agent", "service_account"],
    ["service", undefined],
  ])("shows a creator that is an %s with the type %s", async (type, shown) => {
    api.respondWith({ listCostliestPullRequests: { scope: SCOPE, data: [costed({ creator: { type, uid: "a" } })] } });
    expect((await get("/per-pr/top")).body.data[0].creator).toEqual({ ...(shown && { type: shown }), uid: "a" });
  });
  test.each([1, 50])("takes limit=%i; periods are no parameter of it", async (limit) => {
    api.respondWith({ listCostliestPullRequests: { scope: SCOPE, data: [] } });
    expect((await get(`/per-pr/top?limit=${limit}&group_by_period=week`)).body).toEqual({ ...RANGED, data: [] });
    expect(asked("listCostliestPullRequests")).toMatchObject({ limit, range: { groupByPeriod: "" } });
  });
  test("is exported as CSV, in which titles are quoted", async () => {
    api.respondWith({ listCostliestPullRequests: { scope: SCOPE, data: [costed()] } });
    const [header, row] = (await get("/per-pr/top", { accept: "text/csv" })).body.split("\r\n");
    expect(header).toMatch(
      /^url,provider,.*,inference_dollars,compute_dollars,platform_dollars,total_dollars,creator_uid,creator_name,source,requested_model_id,models$/,
    );
    expect(row).toContain(',"Fix, ""it""",');
    expect(row).toMatch(/,4,0\.25,0\.01,4\.26,[0-9a-f-]+,Ada,API,auto,"\[\{""model_id"":""opus"",/);
  });
  badRequests("/per-pr/top", [
    "limit=0",
    "limit=51",
    "limit=-1",
    "limit=1.5",
    "limit=",
    "limit=1e1",
    "limit=1&limit=2",
    ...BAD_RANGES,
  ]);
  test("names the limit that was sent and the range", async () => {
    api.respondWith({});
    expect((await get("/per-pr/top?limit=51")).body.detail).toBe(
      "query.limit: must be a whole number between 1 and 50 (got 51)",
    );
  });
  testUpstreamErrors(
    () => api,
    () => get("/per-pr/top"),
    ["listCostliestPullRequests", ...documented, upstreamError("invalid_argument", "limit_invalid")],
  );
});

describe("GET …/costs/per-pr/by-size", () => {
  const bucket = (size: string, cost: object, series: object[] = []) => ({ size, cost, series });
  const cost = { prCount: 2n, spend: spend(1_000_000n, 500_000n) };
  test("returns all four buckets in order, null for the mean of none", async () => {
    api.respondWith({
      getCostBySize: {
        scope: SCOPE,
        prCount: 3n,
        sizedPrCount: 2n,
        buckets: [bucket("S", {}), bucket("M", cost), bucket("L", {}), bucket("XL", {})],
      },
    });
    const none = { pr_count: 0, mean: null };
    expect((await get("/per-pr/by-size")).body).toEqual({
      ...OVERALL,
      pr_count: 3,
      sized_pr_count: 2,
      buckets: [
        { size: "S", ...none },
        { size: "M", pr_count: 2, mean: 0.75 },
        { size: "L", ...none },
        { size: "XL", ...none },
      ],
    });
    expect(asked("getCostBySize").range.factoryUid).toBe(FACTORY);
  });
  test("returns a series of means with periods", async () => {
    api.respondWith({
      getCostBySize: { scope: WEEKS, prCount: 2n, sizedPrCount: 2n, buckets: [bucket("S", cost, [{}, cost])] },
    });
    expect((await get("/per-pr/by-size?group_by_period=week")).body).toEqual({
      ...WEEKLY,
      pr_count: 2,
      sized_pr_count: 2,
      buckets: [{ size: "S", pr_count: 2, mean: 0.75, series: [null, 0.75] }],
    });
  });
  badRequests("/per-pr/by-size", [...BAD_RANGES, "group_by_period=DAY"]);
  testUpstreamErrors(
    () => api,
    () => get("/per-pr/by-size"),
    ["getCostBySize", ...withPeriods],
  );
});

test("every read counts for the limit of the credential and the factory", async () => {
  api.respondWith({
    getCostPerPullRequest: { scope: SCOPE, cost: {} },
    getCostBreakdown: { scope: SCOPE, groupBy: "user" },
    listCostliestPullRequests: { scope: SCOPE },
    getCostBySize: { scope: SCOPE },
  });
  api.counted.length = 0;
  for (const path of ["/per-pr", "/breakdown?group_by=user", "/per-pr/top", "/per-pr/by-size"]) await get(path);
  expect(new Set(api.counted.map(String)).size).toBe(1);
  expect(api.counted).toHaveLength(4);
});
