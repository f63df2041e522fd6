import { expect, test } from "@jest/globals";
import { fakeApi } from "./fake-api.ts";

const { seen, answers, millwright, inColour } = fakeApi();

const F1 = "0198a202-0000-7000-8000-00000000000f";
const BASE = `/api/v1/factory/${F1}`;
const RANGE = { as_of: "T3", start_date: "T1", end_date: "T2", group_by_period: null };
const WEEKS = { ...RANGE, group_by_period: "week", period_list: ["2026-11-08", "2026-11-15"] };
const FROM = "from T1 to T2, complete up to T3";
const stage = (median: number | null, count: number) => ({ median_seconds: median, measured_pr_count: count });
const latency = {
  merged_pr_count: 4,
  kickoff_to_pr: stage(30, 4),
  pr_to_first_review: stage(null, 0),
  first_review_to_merge: stage(5400, 1),
  kickoff_to_merge: stage(172_800, 4),
};
const funnel = { total_merged: 9, factory_merged: 5, factory_merged_observed: 4, rate: 0.75 };
const impact = { additions: 10, deletions: 2, merged_pr_count: 5, measured_pr_count: 4 };
const METRICS = {
  run_count: { total: 3 },
  pr_count: { total: 2 },
  merged_pr_count: { total: 1 },
  average_human_interactions_per_pr: { mean: null },
  autonomy_funnel: funnel,
  impact,
  pr_latency: latency,
};
const dollars = (inference: number, compute = 0, platform = 0) => ({
  inference,
  compute,
  platform,
  total: inference + compute + platform,
});

test("shows the metrics of a factory, a dash for what is undefined", async () => {
  answers[`GET ${BASE}/metrics`] = { status: 200, body: { ...RANGE, ...METRICS } };
  const { code, out } = await millwright("metrics", F1);
  expect([code, out.split("\n")[0]]).toEqual([0, FROM]);
  expect(out).toMatch(/^runs +3$/m);
  expect(out).toMatch(/^human interactions per pull request +-$/m);
  expect(out).toMatch(/^merged by the factory +5 +5 of 9$/m);
  expect(out).toMatch(/^autonomy +75\.0 % +4 of 5$/m);
  expect(out).toMatch(/^merged lines +\+10 -2 +4 of 5$/m);
  expect(out).toMatch(/^kickoff to pull request, median +30\.0 s +4 of 4$/m);
  expect(out).toMatch(/^pull request to first review, median +- +0 of 4$/m);
  expect(out).toMatch(/^first review to merge, median +1\.5 h +1 of 4$/m);
  expect(out).toMatch(/^kickoff to merge, median +2\.0 d +4 of 4$/m);
  expect(JSON.parse((await millwright("metrics", F1, "--json")).out)).toMatchObject(METRICS);
});

test("draws series in ASCII where the output is no terminal, in blocks on one", async () => {
  const body = {
    ...WEEKS,
    ...METRICS,
    run_count: { total: 8, series: [1, 7] },
    autonomy_funnel: { ...funnel, series: [{ ...funnel, rate: null }, funnel] },
    impact: { ...impact, series: [impact, impact] },
    pr_latency: { ...latency, series: [latency, latency] },
  };
  answers[`GET ${BASE}/metrics?start_date=2026-11-08&end_date=2026-11-22&group_by_period=week`] = { status: 200, body };
  const argv = ["metrics", F1, "--since", "2026-11-08", "--until", "2026-11-22", "--period", "week"];
  const plain = (await millwright(...argv)).out;
  expect(plain).toMatch(/PER WEEK, 2026-11-08 TO 2026-11-15$/m);
  expect(plain).toMatch(/^runs +8 +\.@$/m);
  expect(plain).toMatch(/^autonomy +75\.0 % +4 of 5 +@$/m);
  expect(plain).toMatch(/^[\n\x20-\x7e]*$/);
  expect((await inColour(...argv)).out).toMatch(/^runs +8 +▂█$/m);
  expect((await millwright("metrics", F1, "--period", "year")).code).toBe(2);
});

test("shows runs by one dimension", async () => {
  const groups = [
    { key: "SUCCEEDED", total: 6 },
    { key: "FAILED", label: "failed", total: 3 },
    { key: "UNKNOWN", total: 0 },
  ];
  answers[`GET ${BASE}/metrics/run-breakdown?group_by=status`] = {
    status: 200,
    body: { ...RANGE, group_by: "status", total: { total: 9 }, root_run_count: { total: 5 }, groups },
  };
  const { out } = await millwright("metrics", F1, "--by", "status");
  expect(out).toContain("9 runs, 5 of them root runs");
  expect(out).toMatch(/^STATUS +RUNS$/m);
  expect(out).toMatch(/^SUCCEEDED +6 +#{20}\nfailed +3 +#{10}\nUNKNOWN +0$/m);
  expect((await inColour("metrics", F1, "--by", "status")).out).toMatch(/^failed +3 +█{10}$/m);
  expect((await millwright("metrics", F1, "--by", "user")).code).toBe(2);
});

test("shows what a pull request costs on average", async () => {
  const cost = {
    pr_count: 2,
    dollars: dollars(3, 1, 0.5),
    mean: 2.25,
    inference_mean: 1.5,
    compute_mean: 0.5,
    platform_mean: 0.25,
  };
  answers[`GET ${BASE}/costs/per-pr`] = { status: 200, body: { ...RANGE, ...cost } };
  const { out } = await millwright("costs", F1);
  expect(out).toContain("2 pull requests");
  expect(out).toMatch(
    /^inference +\$3\.00 +\$1\.50\ncompute +\$1\.00 +\$0\.5000\nplatform +\$0\.5000 +\$0\.2500\ntotal +\$4\.50 +\$2\.25$/m,
  );
  const none = {
    pr_count: 0,
    dollars: dollars(0),
    mean: null,
    inference_mean: null,
    compute_mean: null,
    platform_mean: null,
  };
  answers[`GET ${BASE}/costs/per-pr?group_by_period=week`] = {
    status: 200,
    body: { ...WEEKS, ...none, series: [none, cost] },
  };
  expect((await millwright("costs", F1, "--period", "week")).out).toMatch(/^total +\$0\.0000 +- +@$/m);
});

test("shows all spend by one dimension, and how much of it is known", async () => {
  const groups = [
    { key: "u1", label: "Ada", deleted: false, dollars: dollars(4) },
    { key: "u2", label: "Bob", deleted: true, dollars: dollars(0.5, 0.5) },
  ];
  const coverage = { model_calls: 10, priced_model_calls: 9, compute_intervals: 4, priced_compute_intervals: 3 };
  const body = { ...RANGE, group_by: "user", total: dollars(4.5, 0.5), groups, coverage };
  answers[`GET ${BASE}/costs/breakdown?group_by=user`] = { status: 200, body };
  const { out } = await millwright("costs", F1, "--by", "user");
  expect(out).toMatch(
    /^Ada +\$4\.00 +\$0\.0000 +\$0\.0000 +\$4\.00 +#{20}\nBob \(deleted\) +\$0\.5000 +\$0\.5000 +\$0\.0000 +\$1\.00 +#{5}$/m,
  );
  expect(out).toMatch(/^all +\$4\.50 +\$0\.5000 +\$0\.0000 +\$5\.00$/m);
  expect(out).toContain("Known prices: 9 of 10 model calls, 3 of 4 compute intervals.");
});

test("shows the costliest pull requests and the mean by size", async () => {
  const row = {
    url: "https://h/o/r/pull/1",
    title: "Fix\u001b[31m it",
    dollars: dollars(2),
    models: [{ model_id: "opus", share: 1 }],
  };
  answers[`GET ${BASE}/costs/per-pr/top?limit=1`] = { status: 200, body: { ...RANGE, data: [row] } };
  expect((await millwright("costs", F1, "--top", "--limit", "1")).out).toMatch(
    /^\$2\.00 +#{20} +https:\/\/h\/o\/r\/pull\/1 +Fix it +opus$/m,
  );
  const buckets = [
    { size: "S", pr_count: 0, mean: null },
    { size: "M", pr_count: 2, mean: 1.5 },
  ];
  answers[`GET ${BASE}/costs/per-pr/by-size`] = {
    status: 200,
    body: { ...RANGE, pr_count: 3, sized_pr_count: 2, buckets },
  };
  const { out } = await millwright("costs", F1, "--by-size");
  expect(out).toContain("2 of 3 pull requests have a known size");
  expect(out).toMatch(/^S +0 +-\nM +2 +\$1\.50 +#{20}$/m);
});

test.each([
  [["costs", F1, "--top", "--by-size"], "Give one of --top, --by-size."],
  [["costs", F1, "--by", "user", "--top"], "Give one of --by, --top."],
  [["costs", F1, "--limit", "5"], "--limit needs --top."],
  [["costs", F1, "--top", "--period", "day"], "--top takes no --period."],
  [["costs", F1, "--by", "status"], "--by must be one of source, user, agent, model"],
  [["costs", F1, "--factory", F1], "Name the factory once"],
  [["pr", "list", F1, "--state", "OPEN"], "--state must be one of open, draft, merged, closed"],
  [["pr", "list", F1, "--export", "csv,ndjson"], "--export takes one format."],
])("%j is wrong usage and sends no request", async (argv, message) => {
  const { code, err } = await millwright(...argv);
  expect([code, err]).toEqual([2, expect.stringContaining(message)]);
  expect(seen).toEqual([]);
});

test("lists pull requests; more of them are mentioned", async () => {
  const merged = {
    ...{ url: "u1", title: "T", state: "merged", opened_at: "T1", additions: 3, deletions: 1 },
    ...{ human_interactions: { total: 2 }, cycle_time: { kickoff_to_merge: 90 } },
  };
  const unknown = {
    ...{ url: "u2", title: null, state: "open", opened_at: null, additions: null, deletions: null },
    ...{ human_interactions: null, cycle_time: { kickoff_to_merge: null } },
  };
  const query = "repo=o%2Fr&state=open&state=merged&opened_after=2026-11-01&opened_before=2026-11-09&limit=2";
  answers[`GET ${BASE}/pull-requests?${query}`] = {
    status: 200,
    body: { data: [merged, unknown], page_info: { has_next_page: true } },
  };
  const filters = [
    "--repo",
    "o/r",
    "--state",
    "open,merged",
    "--since",
    "2026-11-01",
    "--until",
    "2026-11-09",
    "--limit",
    "2",
  ];
  const { out } = await millwright("pr", "list", F1, ...filters);
  expect(out).toMatch(
    /^merged +T1 +\+3 -1 +2 +1\.5 min +u1 +T\nopen +- +- +- +- +u2\nThere are more: raise --limit, or use --export\.$/m,
  );
  expect(JSON.parse((await millwright("pr", "list", F1, ...filters, "--json")).out)).toEqual([merged, unknown]);
});

test.each([
  ["csv", "text/csv", "url\r\nu1\r\n", "url\nu1"],
  ["ndjson", "application/x-ndjson", '{"url":"u1"}\n', '{"url":"u1"}'],
])("exports pull requests as %s", async (format, type, text, out) => {
  answers[`GET ${BASE}/pull-requests`] = { status: 200, type, text };
  expect(await millwright("pr", "list", F1, "--export", format)).toMatchObject({ code: 0, out });
  expect(seen.at(-1)).toMatchObject({ accept: type });
});

test("accepts a name, --factory, or the only factory", async () => {
  const page = { status: 200, body: { data: [], page_info: { has_next_page: false } } };
  answers["GET /api/v1/factory?search=shop&limit=100"] = {
    status: 200,
    body: { factories: [{ uid: F1, name: "shop", alias: null }] },
  };
  answers["GET /api/v1/factory?limit=100"] = answers["GET /api/v1/factory?search=shop&limit=100"];
  answers[`GET ${BASE}/pull-requests`] = page;
  for (const argv of [["shop"], ["--factory", "shop"], []])
    expect((await millwright("pr", "list", ...argv)).code).toBe(0);
});
