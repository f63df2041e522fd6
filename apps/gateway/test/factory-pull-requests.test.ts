import { afterAll, beforeAll, expect, test } from "@jest/globals";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { ABOUT, aPullRequest, PULL_REQUEST, PULLS, SCOPE, unreported, UNREPORTED } from "./support/metrics.ts";
import { at, FACTORY } from "./support/records.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const scope = { ...SCOPE, startDate: undefined, endDate: undefined };
const asked = () => api.calls.filter((call) => call.method === "listPullRequests").map(({ request }) => request);
const list = (query = "", headers = {}) => api.call("GET", `${PULLS}${query}`, { headers });
const answer = (page: object = {}) => api.respondWith({ listPullRequests: { scope, data: [], ...page } });

test("returns exactly the members of the specification, with null for unknown values", async () => {
  answer({ data: [aPullRequest(), unreported], nextPageToken: "next" });
  const { body, headers } = await list();
  expect(body).toEqual({
    ...ABOUT,
    data: [PULL_REQUEST, UNREPORTED],
    page_info: { has_next_page: true, next_cursor: "next" },
  });
  expect([headers.get("content-type"), headers.get("vary")]).toEqual(["application/json; charset=utf-8", "Accept"]);
  expect(asked()[0]).toMatchObject({ factoryUid: FACTORY, pageSize: 50, pageToken: "", repo: "", states: [] });
});

test("omits the cursor on the last page", async () => {
  answer({ data: [unreported] });
  expect((await list()).body.page_info).toEqual({ has_next_page: false });
});

test("passes on filters, the page size and the cursor", async () => {
  answer();
  const times =
    "opened_after=2026-11-01&opened_before=2026-11-02T00:00:00%2B01:00&merged_after=2026-11-03&merged_before=2026-11-04&updated_after=2026-11-05";
  expect(
    (await list(`?limit=500&cursor=c&repo=Acme/Shop&state=open&state=merged&state=open&${times}&opened_by=x`)).status,
  ).toBe(200);
  expect(asked()[0]).toMatchObject({
    pageSize: 500,
    pageToken: "c",
    repo: "Acme/Shop",
    states: ["open", "merged"],
    openedAfter: at("2026-11-01T00:00:00Z"),
    openedBefore: at("2026-11-01T23:00:00Z"),
    mergedAfter: at("2026-11-03T00:00:00Z"),
    mergedBefore: at("2026-11-04T00:00:00Z"),
    updatedAfter: at("2026-11-05T00:00:00Z"),
  });
});

const wrong = [
  "limit=0",
  "limit=501",
  "limit=x",
  "cursor=",
  "repo=",
  "repo=shop",
  "repo=/shop",
  "repo=acme/%20",
  "repo=a/b&repo=a/c",
  "state=",
  "state=OPEN",
  "state=open,merged",
  "state=open&state=x",
  "opened_after=x",
  "opened_before=",
  "merged_after=1",
  "merged_before=2026-02-30",
  "updated_after=now",
];
testRejectedBeforeUpstreams(
  () => api,
  400,
  wrong.map((query) => ["GET", `${PULLS}?${query}`] as const),
);

test("names a bad state and the allowed ones, and a bad repository", async () => {
  answer();
  expect((await list("?state=OPEN&repo=shop")).body.detail).toBe(
    'query.repo: must be owner/repo (got "shop"); query.state.0: must be one of open, draft, merged, closed (got "OPEN")',
  );
});

testUpstreamErrors(
  () => api,
  () => list(),
  [
    "listPullRequests",
    upstreamError("not_found", "factory_not_found"),
    upstreamError("permission_denied", "not_authorized"),
    upstreamError("invalid_argument", "invalid_cursor"),
    upstreamError("invalid_argument", "state_invalid"),
    upstreamError("invalid_argument", "limit_invalid"),
  ],
);

test("counts one request for the limit, also for an export of several pages", async () => {
  api.counted.length = 0;
  api.respondWith({
    listPullRequests: ({ pageToken }: { pageToken: string }) => ({
      scope,
      data: [],
      nextPageToken: pageToken === "" ? "2" : "",
    }),
  });
  await list("", { accept: "text/csv" });
  expect([api.counted.length, asked().length]).toEqual([1, 2]);
});

const pages = ({ pageToken }: { pageToken: string }) =>
  pageToken === "2" ? { scope, data: [unreported] } : { scope, data: [aPullRequest()], nextPageToken: "2" };

test("exports all pages as NDJSON, one record per line", async () => {
  api.respondWith({ listPullRequests: pages });
  const { body, headers } = await list("?state=open", { accept: "application/x-ndjson" });
  expect(
    body
      .split("\n")
      .slice(0, -1)
      .map((line: string) => JSON.parse(line)),
  ).toEqual([PULL_REQUEST, UNREPORTED]);
  expect([headers.get("content-type"), headers.get("vary")]).toEqual(["application/x-ndjson", "Accept"]);
  expect(asked()).toMatchObject([
    { pageSize: 500, pageToken: "", states: ["open"] },
    { pageSize: 500, pageToken: "2", states: ["open"] },
  ]);
});

test("exports at most limit pull requests, starting at the cursor", async () => {
  api.respondWith({ listPullRequests: pages });
  expect((await list("?limit=1&cursor=c", { accept: "application/x-ndjson" })).body).toBe(
    `${JSON.stringify(PULL_REQUEST)}\n`,
  );
  expect(asked()).toMatchObject([{ pageSize: 1, pageToken: "c" }]);
});

test("exports CSV whose rows have the columns of the header; formulas are neutralised", async () => {
  api.respondWith({
    listPullRequests: { scope, data: [aPullRequest({ title: '=HYPERLINK("x")', authorLogin: "@bot" }), unreported] },
  });
  const [header, first, second, end] = (await list("", { accept: "text/csv" })).body.split("\r\n");
  expect(header).toBe(
    "url,provider,repo_full_name,pr_number,title,author_login,state,opened_at,first_human_review_at,merged_at,closed_at,updated_at,first_seen_at,kickoff_at,additions,deletions,changed_files," +
      "num_commits,human_code_change,history_complete,human_interactions_opened,human_interactions_code_push,human_interactions_review_approved,human_interactions_review_changes_requested," +
      "human_interactions_review_commented,human_interactions_comment,human_interactions_review_comment,human_interactions_pr_action,human_interactions_follow_up_message," +
      "human_interactions_total,cycle_time_kickoff_to_pr,cycle_time_pr_to_first_review,cycle_time_first_review_to_merge,cycle_time_kickoff_to_merge,run_ids",
  );
  expect(first).toMatch(
    /^https:\/\/github\.com\/acme\/shop\/pull\/7,GITHUB,acme\/shop,7,"'=HYPERLINK\(""x""\)",'@bot,merged,2026.*,10,0,2,3,true,true,0,1,2,3,4,5,6,7,8,36,0,59\.877,,59\.877,[0-9a-f-]+$/,
  );
  expect(second.split(",")).toHaveLength(header.split(",").length);
  expect(end).toBe("");
});

test.each([
  ["application/x-ndjson;q=0.9, application/json;q=0.5", "application/x-ndjson"],
  ["text/csv, */*", "text/csv; charset=utf-8"],
  ["TEXT/CSV;header=present", "text/csv; charset=utf-8"],
  ["text/csv;q=0.1, */*;q=0.5", "application/json; charset=utf-8"],
  ["application/json, text/csv", "application/json; charset=utf-8"],
  ["text/csv;q=0", "application/json; charset=utf-8"],
  ["*/*", "application/json; charset=utf-8"],
  ["text/html", "application/json; charset=utf-8"],
])("returns for Accept: %s the type %s", async (accept, type) => {
  answer();
  expect((await list("", { accept })).headers.get("content-type")).toBe(type);
});

test("a failure of the first page of an export is a problem", async () => {
  api.respondWith({ listPullRequests: upstreamError("not_found", "factory_not_found") });
  const { status, headers } = await list("", { accept: "text/csv" });
  expect([status, headers.get("content-type")]).toEqual([404, "application/problem+json"]);
});
