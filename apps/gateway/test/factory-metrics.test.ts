import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { at, FACTORY } from "./support/records.ts";
import { METRICS, OVERALL, SCOPE, WEEKLY, WEEKS } from "./support/metrics.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const asked = (method: string) => api.calls.find((call) => call.method === method)!.request;
const get = (path: string, headers = {}) => api.call("GET", path, { headers });
const documented = [
  upstreamError("not_found", "factory_not_found"),
  upstreamError("permission_denied", "not_authorized"),
  upstreamError("invalid_argument", "date_range_invalid"),
  upstreamError("invalid_argument", "too_many_periods"),
];

describe("GET /factory/{uid}/metrics", () => {
  const funnel = {
    totalMerged: 9n,
    factoryMerged: 5n,
    factoryMergedObserved: 4n,
    mergedWithoutHumanCodeChange: 3n,
    repos: ["acme/shop"],
  };
  const FUNNEL = {
    total_merged: 9,
    factory_merged: 5,
    factory_merged_observed: 4,
    merged_without_human_code_change: 3,
    rate: 0.75,
    repos: ["acme/shop"],
  };
  const noFunnel = { totalMerged: 1n, repos: ["acme/shop"] };
  const NO_FUNNEL = {
    total_merged: 1,
    factory_merged: 0,
    factory_merged_observed: 0,
    merged_without_human_code_change: 0,
    rate: null,
    repos: ["acme/shop"],
  };
  const impact = { additions: 100n, deletions: 20n, mergedPrCount: 5n, measuredPrCount: 4n };
  const IMPACT = { additions: 100, deletions: 20, merged_pr_count: 5, measured_pr_count: 4 };
  const latency = {
    mergedPrCount: 5n,
    kickoffToPr: { medianSeconds: 0, measuredPrCount: 5n },
    prToFirstReview: { measuredPrCount: 0n },
    firstReviewToMerge: { medianSeconds: 1.5, measuredPrCount: 1n },
    kickoffToMerge: { medianSeconds: 90, measuredPrCount: 4n },
  };
  const LATENCY = {
    merged_pr_count: 5,
    kickoff_to_pr: { median_seconds: 0, measured_pr_count: 5 },
    pr_to_first_review: { median_seconds: null, measured_pr_count: 0 },
    first_review_to_merge: { median_seconds: 1.5, measured_pr_count: 1 },
    kickoff_to_merge: { median_seconds: 90, measured_pr_count: 4 },
  };
  const UNMEASURED = { median_seconds: null, measured_pr_count: 0 };
  const NO_LATENCY = {
    merged_pr_count: 0,
    kickoff_to_pr: UNMEASURED,
    pr_to_first_review: UNMEASURED,
    first_review_to_merge: UNMEASURED,
    kickoff_to_merge: UNMEASURED,
  };
  const found = {
    runCount: { total: 3n },
    prCount: { total: 2n },
    mergedPrCount: { total: 1n },
    averageHumanInteractionsPerPr: { mean: {} },
    autonomyFunnel: funnel,
    impact,
    prLatency: latency,
  };
  const series = {
    runCount: { total: 3n, series: [1n, 2n] },
    prCount: { total: 2n, series: [0n, 2n] },
    mergedPrCount: { total: 1n, series: [0n, 1n] },
    averageHumanInteractionsPerPr: { mean: { value: 0 }, series: [{}, { value: 0 }] },
    autonomyFunnelSeries: [noFunnel, funnel],
    impactSeries: [{}, impact],
    prLatencySeries: [{}, latency],
  };
  const BODY = {
    run_count: { total: 3 },
    pr_count: { total: 2 },
    merged_pr_count: { total: 1 },
    average_human_interactions_per_pr: { mean: null },
    autonomy_funnel: FUNNEL,
    impact: IMPACT,
    pr_latency: LATENCY,
  };

  test("returns exactly the members of the specification, null for means of nothing, and no series without periods", async () => {
    api.respondWith({ getMetrics: { ...found, scope: SCOPE } });
    const { status, body } = await get(METRICS);
    expect([status, body]).toEqual([200, { ...OVERALL, ...BODY }]);
    expect(asked("getMetrics").range).toMatchObject({ factoryUid: FACTORY, groupByPeriod: "" });
    expect([asked("getMetrics").range.startDate, asked("getMetrics").range.endDate]).toEqual([undefined, undefined]);
  });
  test("returns a series of every metric with periods; a mean of 0 is not null", async () => {
    api.respondWith({ getMetrics: { ...found, ...series, scope: WEEKS } });
    expect((await get(`${METRICS}?group_by_period=week`)).body).toEqual({
      ...WEEKLY,
      run_count: { total: 3, series: [1, 2] },
      pr_count: { total: 2, series: [0, 2] },
      merged_pr_count: { total: 1, series: [0, 1] },
      average_human_interactions_per_pr: { mean: 0, series: [null, 0] },
      autonomy_funnel: { ...FUNNEL, series: [NO_FUNNEL, FUNNEL] },
      impact: { ...IMPACT, series: [{ additions: 0, deletions: 0, merged_pr_count: 0, measured_pr_count: 0 }, IMPACT] },
      pr_latency: { ...LATENCY, series: [NO_LATENCY, LATENCY] },
    });
    expect(asked("getMetrics").range.groupByPeriod).toBe("week");
  });
  test.each([
    ["2026-11-01", "2026-11-01T00:00:00Z"],
    ["2026-11-01T02:00:00.5%2B02:00", "2026-11-01T00:00:00.5Z"],
    ["2026-11-01T00:00:00z", "2026-11-01T00:00:00Z"],
  ])("reads start_date=%s", async (text, expected) => {
    api.respondWith({ getMetrics: { ...found, scope: SCOPE } });
    expect((await get(`${METRICS}?start_date=${text}&end_date=${text}&cost_per_pr=true`)).status).toBe(200);
    expect(asked("getMetrics").range).toMatchObject({ startDate: at(expected), endDate: at(expected) });
  });
  test("counts for the limit of the factory, whatever the reads", async () => {
    api.respondWith({ getMetrics: { ...found, scope: SCOPE } });
    api.counted.length = 0;
    await get(METRICS);
    expect(api.counted).toEqual([[expect.stringMatching(/^[0-9a-f]{64}$/), FACTORY]]);
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [
      "group_by_period=year",
      "group_by_period=",
      "group_by_period=day&group_by_period=day",
      "start_date=",
      "start_date=yesterday",
      "end_date=2026-02-30",
      "end_date=1",
    ].map((query) => ["GET", `${METRICS}?${query}`] as const),
  );
  testRejectedBeforeUpstreams(() => api, 404, [["GET", "/api/v1/factory/none/metrics"]]);
  test("names the value and the allowed values of a bad parameter", async () => {
    api.respondWith({});
    expect((await get(`${METRICS}?group_by_period=year&start_date=yesterday`)).body).toMatchObject({
      reason: "invalid_parameter",
      detail:
        'query.start_date: must be an RFC 3339 time or a date (got "yesterday"); query.group_by_period: must be one of day, week, month (got "year")',
    });
  });
  testUpstreamErrors(
    () => api,
    () => get(METRICS),
    ["getMetrics", ...documented],
  );
});

describe("GET /factory/{uid}/metrics/run-breakdown", () => {
  const BREAKDOWN = `${METRICS}/run-breakdown`;
  const groups = [
    { key: "FOREMAN", label: "", total: 3n, series: [1n, 2n] },
    { key: "=cmd", label: "a,b", total: 1n, series: [0n, 1n] },
    { key: "UNKNOWN", label: "", total: 1n, series: [1n, 0n] },
  ];
  const found = {
    groupBy: "agent_type",
    total: { total: 5n, series: [2n, 3n] },
    rootRunCount: { total: 4n, series: [2n, 2n] },
    groups,
  };
  const answer = (scope: object) => api.respondWith({ getRunBreakdown: { ...found, scope } });

  test("returns exactly the members of the specification in the order of the service", async () => {
    answer(SCOPE);
    const { body, headers } = await get(`${BREAKDOWN}?group_by=agent_type`);
    expect(body).toEqual({
      ...OVERALL,
      group_by: "agent_type",
      total: { total: 5 },
      root_run_count: { total: 4 },
      groups: [
        { key: "FOREMAN", total: 3 },
        { key: "=cmd", label: "a,b", total: 1 },
        { key: "UNKNOWN", total: 1 },
      ],
    });
    expect([headers.get("content-type"), headers.get("vary")]).toEqual(["application/json; charset=utf-8", "Accept"]);
    expect(asked("getRunBreakdown")).toMatchObject({ groupBy: "agent_type", range: { factoryUid: FACTORY } });
  });
  test("returns series with periods", async () => {
    answer(WEEKS);
    const { body } = await get(`${BREAKDOWN}?group_by=agent_type&group_by_period=week`);
    expect(body).toMatchObject({
      ...WEEKLY,
      total: { total: 5, series: [2, 3] },
      root_run_count: { total: 4, series: [2, 2] },
      groups: [{ series: [1, 2] }, { series: [0, 1] }, { series: [1, 0] }],
    });
  });
  test("is exported as NDJSON", async () => {
    answer(SCOPE);
    const { body, headers } = await get(`${BREAKDOWN}?group_by=agent_type`, { accept: "application/x-ndjson" });
    expect(body).toBe(
      '{"key":"FOREMAN","total":3}\n{"key":"=cmd","label":"a,b","total":1}\n{"key":"UNKNOWN","total":1}\n',
    );
    expect([headers.get("content-type"), headers.get("content-disposition")]).toEqual([
      "application/x-ndjson",
      'attachment; filename="runs-by-agent_type.ndjson"',
    ]);
  });
  test("is exported as CSV with a column per period; formulas are neutralised and commas quoted", async () => {
    answer(WEEKS);
    const { body, headers } = await get(`${BREAKDOWN}?group_by=agent_type&group_by_period=week`, {
      accept: "text/csv",
    });
    expect(body).toBe(
      'key,label,total,2026-11-08,2026-11-15\r\nFOREMAN,,3,1,2\r\n\'=cmd,"a,b",1,0,1\r\nUNKNOWN,,1,1,0\r\n',
    );
    expect(headers.get("content-type")).toBe("text/csv; charset=utf-8");
  });
  test.each(["agent_type", "status", "source", "root_vs_subrun", "model", "harness"])(
    "takes group_by=%s",
    async (dimension) => {
      answer(SCOPE);
      expect((await get(`${BREAKDOWN}?group_by=${dimension}`)).status).toBe(200);
      expect(asked("getRunBreakdown").groupBy).toBe(dimension);
    },
  );
  testRejectedBeforeUpstreams(
    () => api,
    400,
    ["", "?group_by=", "?group_by=user", "?group_by=status&group_by=model"].map(
      (query) => ["GET", `${BREAKDOWN}${query}`] as const,
    ),
  );
  test("reports that group_by is required, with its allowed values", async () => {
    api.respondWith({});
    expect((await get(BREAKDOWN)).body.detail).toBe(
      "query.group_by: is required: one of agent_type, status, source, root_vs_subrun, model, harness",
    );
  });
  testUpstreamErrors(
    () => api,
    () => get(`${BREAKDOWN}?group_by=status`),
    ["getRunBreakdown", ...documented, upstreamError("invalid_argument", "group_by_invalid")],
  );
});
