import { timestampDate } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { OTHER_TEAM, TEAM, USER } from "./support/people.ts";
import { at, CREATED, UPDATED } from "./support/records.ts";

const PRICES = "/api/v1/platform/compute-prices";
const CREDITS = `/api/v1/team/${TEAM}/credits`;
const OTHER_CREDITS = `/api/v1/team/${OTHER_TEAM}/credits`;
const by = { type: "user", uid: USER };
const price = {
  version: 2,
  vcpuHourMicros: 40_000n,
  gbHourMicros: 5_000n,
  platformRunMicros: 250n,
  effectiveFrom: at(CREATED),
  createdAt: at(UPDATED),
  createdBy: by,
  repricing: { completedAt: at(UPDATED), runCount: 4n, correctionCount: 3n, correctedMicros: -1_500_000n },
};
const shownPrice = {
  version: 2,
  vcpu_hour_usd: 0.04,
  gb_hour_usd: 0.005,
  platform_run_usd: 0.00025,
  effective_from: CREATED,
  created_at: UPDATED,
  created_by: by,
  repricing: { status: "complete", completed_at: UPDATED, run_count: 4, correction_count: 3, corrected_usd: -1.5 },
};
const grant = {
  uid: "0198c2d0-0000-7000-8000-00000000f001",
  teamUid: TEAM,
  micros: 500_000_000n,
  note: "November",
  grantedAt: at(CREATED),
  createdBy: by,
};
const shownGrant = {
  uid: grant.uid,
  amount_usd: 500,
  note: "November",
  granted_at: CREATED,
  expires_at: null,
  created_by: by,
};
const PRICE = { vcpu_hour_usd: 0.04, gb_hour_usd: 0.005, platform_run_usd: 0.00025 };
const GRANT = { amount_usd: 500 };

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

test("versions are listed in pages, with what they have corrected", async () => {
  const running = { ...price, createdBy: undefined, repricing: { runCount: 1n } };
  api.respondWith({ listComputePrices: { prices: [price, running], nextPageToken: "next" } });
  expect((await api.call("GET", `${PRICES}?limit=2&cursor=c`, { key: "of_no_team" })).body).toEqual({
    prices: [
      shownPrice,
      {
        ...shownPrice,
        created_by: null,
        repricing: { status: "running", completed_at: null, run_count: 1, correction_count: 0, corrected_usd: 0 },
      },
    ],
    page_info: { has_next_page: true, next_cursor: "next" },
  });
  expect(api.calls[0]!.request).toMatchObject({ pageSize: 2, pageToken: "c" });
});

test("a version is added in whole micro-dollars, with the key of the request", async () => {
  api.respondWith({ addComputePrice: { price } });
  const body = { ...PRICE, platform_run_usd: 1.000001, effective_from: "2026-11-01" };
  const answer = await api.call("POST", PRICES, { body, key: "admin", headers: { "idempotency-key": "k" } });
  expect(answer).toMatchObject({ status: 201, body: shownPrice });
  await api.call("POST", PRICES, { body: PRICE, key: "admin" });
  const [first, second] = api.calls.map(({ request }) => request);
  expect(first).toMatchObject({
    vcpuHourMicros: 40_000n,
    gbHourMicros: 5_000n,
    platformRunMicros: 1_000_001n,
    idempotencyKey: "k",
  });
  expect(timestampDate(first.effectiveFrom)).toEqual(new Date("2026-11-01T00:00:00.000Z"));
  expect(second.effectiveFrom).toBeUndefined();
});

test("credits are read with their balance", async () => {
  const balance = {
    grantedMicros: 500_000_000n,
    spentMicros: 7n,
    expiredMicros: 1n,
    remainingMicros: 499_999_992n,
    overdrawnMicros: 0n,
    asOf: at(UPDATED),
  };
  api.respondWith({ getCreditBalance: balance, listCreditGrants: { grants: [{ ...grant, expiresAt: at(UPDATED) }] } });
  expect((await api.call("GET", CREDITS)).body).toEqual({
    granted_usd: 500,
    spent_usd: 0.000007,
    expired_usd: 0.000001,
    remaining_usd: 499.999992,
    overdrawn_usd: 0,
    as_of: UPDATED,
    grants: [{ ...shownGrant, expires_at: UPDATED }],
    page_info: { has_next_page: false },
  });
});

test("credits are granted to any team by a platform administrator", async () => {
  api.respondWith({ grantCredits: { grant } });
  const body = { ...GRANT, note: "November", expires_at: "2027-01-01T00:00:00Z" };
  expect(await api.call("POST", CREDITS, { body, key: "admin" })).toMatchObject({ status: 201, body: shownGrant });
  expect((await api.call("POST", OTHER_CREDITS, { body: GRANT, key: "admin" })).status).toBe(201);
  expect(api.calls.map(({ request }) => request)).toMatchObject([
    { teamUid: TEAM, micros: 500_000_000n, note: "November" },
    { teamUid: OTHER_TEAM, note: "" },
  ]);
  const absent = `/api/v1/team/${USER}/credits`;
  expect((await api.call("POST", absent, { body: GRANT, key: "admin" })).status).toBe(404);
  expect(api.calls).toHaveLength(2);
});

testUpstreamErrors(
  () => api,
  () => api.call("GET", PRICES),
  ["listComputePrices", upstreamError("invalid_argument", "invalid_cursor")],
);
testUpstreamErrors(
  () => api,
  () => api.call("POST", PRICES, { body: PRICE }),
  [
    "addComputePrice",
    upstreamError("permission_denied", "not_authorized"),
    upstreamError("invalid_argument", "price_invalid"),
    upstreamError("conflict", "idempotency_mismatch"),
  ],
);
testUpstreamErrors(
  () => api,
  () => api.call("POST", CREDITS, { body: GRANT }),
  [
    "grantCredits",
    upstreamError("permission_denied", "not_authorized"),
    upstreamError("invalid_argument", "credits_invalid"),
    upstreamError("conflict", "idempotency_mismatch"),
  ],
);
testRejectedBeforeUpstreams(() => api, 404, [
  ["GET", OTHER_CREDITS],
  ["POST", OTHER_CREDITS, GRANT],
  ["POST", "/api/v1/team/x/credits", GRANT],
]);
testRejectedBeforeUpstreams(() => api, 400, [
  ...[
    {},
    { ...PRICE, vcpu_hour_usd: -1 },
    { ...PRICE, gb_hour_usd: "1" },
    { ...PRICE, gb_hour_usd: 1_000_001 },
    { ...PRICE, platform_run_usd: 0.0000001 },
    { ...PRICE, effective_from: "yesterday" },
  ].map((body) => ["POST", PRICES, body] as const),
  ...[{}, { amount_usd: 0 }, { amount_usd: 0.0000015 }, { ...GRANT, note: "n".repeat(501) }].map(
    (body) => ["POST", CREDITS, body] as const,
  ),
  ["GET", `${PRICES}?limit=101`],
]);
