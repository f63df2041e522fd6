import { afterAll, beforeAll, expect, test } from "@jest/globals";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { OTHER_TEAM, TEAM } from "./support/people.ts";
import { at, CREATED, UPDATED } from "./support/records.ts";

const UID = "0198c2d0-0000-7000-8000-00000000e001";
const FACTORY = "0198c2d0-0000-7000-8000-00000000e002";
const PATH = `/api/v1/team/${TEAM}/budgets`;
const budget = {
  uid: UID,
  teamUid: TEAM,
  scope: "factory",
  scopeUid: FACTORY,
  period: "month",
  limitMicros: 10_500_000n,
  thresholdsPercent: [50, 100],
  spentMicros: 4_000_000n,
  reservedMicros: 500_000n,
  periodStart: at("2026-11-01T00:00:00.000Z"),
  resetsAt: at("2026-12-01T00:00:00.000Z"),
  createdAt: at(CREATED),
  updatedAt: at(UPDATED),
};
const shown = {
  uid: UID,
  scope: "factory",
  scope_uid: FACTORY,
  period: "month",
  limit_usd: 10.5,
  thresholds_percent: [50, 100],
  spent_usd: 4,
  reserved_usd: 0.5,
  remaining_usd: 6,
  period_start: "2026-11-01T00:00:00.000Z",
  resets_at: "2026-12-01T00:00:00.000Z",
  created_at: CREATED,
  updated_at: UPDATED,
};

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

test("budgets are listed and read with what is left of them", async () => {
  const spent = { ...budget, period: "total", spentMicros: 20_000_000n, resetsAt: undefined };
  api.respondWith({ listBudgets: { budgets: [budget, spent] }, getBudget: { budget } });
  expect((await api.call("GET", PATH)).body).toEqual({
    budgets: [shown, { ...shown, period: "total", spent_usd: 20, remaining_usd: 0, resets_at: null }],
  });
  expect((await api.call("GET", `${PATH}/${UID}`)).body).toEqual(shown);
  expect(api.calls.map(({ request }) => [request.teamUid, request.uid])).toEqual([
    [TEAM, undefined],
    [TEAM, UID],
  ]);
});

test("a queued run shows the budgets that are exhausted or nearly so", async () => {
  const message = "The budget is exhausted.";
  api.respondWith({ getQueueStatus: { state: "QUEUED", reason: "budget_exhausted", message, budgets: [budget] } });
  expect((await api.call("GET", `/api/v1/agent/runs/${UID}/queue`)).body).toEqual({
    ...{ state: "QUEUED", reason: "budget_exhausted", message },
    budgets: [shown],
  });
});

test("budgets are created, changed and deleted", async () => {
  api.respondWith({ createBudget: { budget }, updateBudget: { budget }, deleteBudget: {} });
  expect(
    await api.call("POST", PATH, {
      body: { scope: "factory", scope_uid: FACTORY, period: "month", limit_usd: 10.5, thresholds_percent: [50, 100] },
    }),
  ).toMatchObject({ status: 201, body: shown });
  expect(await api.call("POST", PATH, { body: { scope: "team", period: "day", limit_usd: 0.000001 } })).toMatchObject({
    status: 201,
  });
  expect(await api.call("PATCH", `${PATH}/${UID}`, { body: { limit_usd: 12 } })).toMatchObject({
    status: 200,
    body: shown,
  });
  expect(await api.call("PATCH", `${PATH}/${UID}`, { body: { thresholds_percent: [] } })).toMatchObject({
    status: 200,
  });
  expect((await api.call("DELETE", `${PATH}/${UID}`)).status).toBe(204);
  expect(api.calls.map(({ request }) => request)).toMatchObject([
    {
      teamUid: TEAM,
      scope: "factory",
      scopeUid: FACTORY,
      period: "month",
      limitMicros: 10_500_000n,
      thresholds: { percents: [50, 100] },
    },
    { scope: "team", scopeUid: "", period: "day", limitMicros: 1n },
    { teamUid: TEAM, uid: UID, limitMicros: 12_000_000n },
    { thresholds: { percents: [] } },
    { teamUid: TEAM, uid: UID },
  ]);
  const changes = api.calls.slice(1).map(({ request }) => [request.limitMicros, request.thresholds?.percents]);
  expect(changes).toEqual([
    [1n, undefined],
    [12_000_000n, undefined],
    [undefined, []],
    [undefined, undefined],
  ]);
});

const BODY = { scope: "team", period: "day", limit_usd: 1 };
testUpstreamErrors(
  () => api,
  () => api.call("GET", PATH),
  ["listBudgets", upstreamError("permission_denied", "not_authorized")],
);
testUpstreamErrors(
  () => api,
  () => api.call("GET", `${PATH}/${UID}`),
  ["getBudget", upstreamError("not_found", "budget_not_found")],
);
testUpstreamErrors(
  () => api,
  () => api.call("POST", PATH, { body: BODY }),
  [
    "createBudget",
    upstreamError("permission_denied", "not_authorized"),
    upstreamError("invalid_argument", "budget_invalid"),
    upstreamError("conflict", "budget_exists"),
  ],
);
testUpstreamErrors(
  () => api,
  () => api.call("PATCH", `${PATH}/${UID}`, { body: {} }),
  [
    "updateBudget",
    upstreamError("not_found", "budget_not_found"),
    upstreamError("permission_denied", "not_authorized"),
  ],
);
testUpstreamErrors(
  () => api,
  () => api.call("DELETE", `${PATH}/${UID}`),
  [
    "deleteBudget",
    upstreamError("not_found", "budget_not_found"),
    upstreamError("permission_denied", "not_authorized"),
  ],
);
testRejectedBeforeUpstreams(() => api, 404, [
  ["GET", `/api/v1/team/${OTHER_TEAM}/budgets`],
  ["GET", `/api/v1/team/${OTHER_TEAM}/budgets/${UID}`],
  ["POST", `/api/v1/team/${OTHER_TEAM}/budgets`, BODY],
  ["DELETE", `${PATH}/x`],
]);
testRejectedBeforeUpstreams(() => api, 400, [
  ...[
    {},
    { ...BODY, scope: "user" },
    { ...BODY, period: "year" },
    { ...BODY, limit_usd: 0 },
    { ...BODY, limit_usd: "1" },
    { ...BODY, scope_uid: "x" },
    { ...BODY, thresholds_percent: [0] },
    { ...BODY, thresholds_percent: [101] },
  ].map((body) => ["POST", PATH, body] as const),
  ["PATCH", `${PATH}/${UID}`, { limit_usd: -1 }],
]);
