import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { neverReachNeighbours, openDoor, refusal, refusalsBecomeProblems, type Door } from "./support/door.ts";
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

let door: Door;
beforeAll(async () => void (door = await openDoor()));
afterAll(() => door.close());

test("budgets are listed and read with what is left of them", async () => {
  const spent = { ...budget, period: "total", spentMicros: 20_000_000n, resetsAt: undefined };
  door.answer({ listBudgets: { budgets: [budget, spent] }, getBudget: { budget } });
  expect((await door.call("GET", PATH)).body).toEqual({
    budgets: [shown, { ...shown, period: "total", spent_usd: 20, remaining_usd: 0, resets_at: null }],
  });
  expect((await door.call("GET", `${PATH}/${UID}`)).body).toEqual(shown);
  expect(door.calls.map(({ request }) => [request.teamUid, request.uid])).toEqual([
    [TEAM, undefined],
    [TEAM, UID],
  ]);
});

test("a queued run shows the budgets that are exhausted or nearly so", async () => {
  const message = "The budget is exhausted.";
  door.answer({ getQueueStatus: { state: "QUEUED", reason: "budget_exhausted", message, budgets: [budget] } });
  expect((await door.call("GET", `/api/v1/agent/runs/${UID}/queue`)).body).toEqual({
    ...{ state: "QUEUED", reason: "budget_exhausted", message },
    budgets: [shown],
  });
});

test("budgets are created, changed and deleted", async () => {
  door.answer({ createBudget: { budget }, updateBudget: { budget }, deleteBudget: {} });
  expect(
    await door.call("POST", PATH, {
      body: { scope: "factory", scope_uid: FACTORY, period: "month", limit_usd: 10.5, thresholds_percent: [50, 100] },
    }),
  ).toMatchObject({ status: 201, body: shown });
  expect(await door.call("POST", PATH, { body: { scope: "team", period: "day", limit_usd: 0.000001 } })).toMatchObject({
    status: 201,
  });
  expect(await door.call("PATCH", `${PATH}/${UID}`, { body: { limit_usd: 12 } })).toMatchObject({
    status: 200,
    body: shown,
  });
  expect(await door.call("PATCH", `${PATH}/${UID}`, { body: { thresholds_percent: [] } })).toMatchObject({
    status: 200,
  });
  expect((await door.call("DELETE", `${PATH}/${UID}`)).status).toBe(204);
  expect(door.calls.map(({ request }) => request)).toMatchObject([
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
  const changes = door.calls.slice(1).map(({ request }) => [request.limitMicros, request.thresholds?.percents]);
  expect(changes).toEqual([
    [1n, undefined],
    [12_000_000n, undefined],
    [undefined, []],
    [undefined, undefined],
  ]);
});

const BODY = { scope: "team", period: "day", limit_usd: 1 };
refusalsBecomeProblems(
  () => door,
  () => door.call("GET", PATH),
  ["listBudgets", refusal("permission_denied", "not_authorized")],
);
refusalsBecomeProblems(
  () => door,
  () => door.call("GET", `${PATH}/${UID}`),
  ["getBudget", refusal("not_found", "budget_not_found")],
);
refusalsBecomeProblems(
  () => door,
  () => door.call("POST", PATH, { body: BODY }),
  [
    "createBudget",
    refusal("permission_denied", "not_authorized"),
    refusal("invalid_argument", "budget_invalid"),
    refusal("conflict", "budget_exists"),
  ],
);
refusalsBecomeProblems(
  () => door,
  () => door.call("PATCH", `${PATH}/${UID}`, { body: {} }),
  ["updateBudget", refusal("not_found", "budget_not_found"), refusal("permission_denied", "not_authorized")],
);
refusalsBecomeProblems(
  () => door,
  () => door.call("DELETE", `${PATH}/${UID}`),
  ["deleteBudget", refusal("not_found", "budget_not_found"), refusal("permission_denied", "not_authorized")],
);
neverReachNeighbours(() => door, 404, [
  ["GET", `/api/v1/team/${OTHER_TEAM}/budgets`],
  ["GET", `/api/v1/team/${OTHER_TEAM}/budgets/${UID}`],
  ["POST", `/api/v1/team/${OTHER_TEAM}/budgets`, BODY],
  ["DELETE", `${PATH}/x`],
]);
neverReachNeighbours(() => door, 400, [
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
