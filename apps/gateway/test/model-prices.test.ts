import { timestampDate } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { USER } from "./support/people.ts";
import { at, CREATED, UPDATED } from "./support/records.ts";

const PATH = "/api/v1/platform/model-prices";
const price = {
  modelId: "openai-compatible/qwen3-coder",
  version: 2,
  inputMicros: 3_000_000n,
  outputMicros: 15_000_000n,
  cacheReadMicros: 300_000n,
  effectiveFrom: at(CREATED),
  createdAt: at(UPDATED),
  createdByType: "user",
  createdByUid: USER,
};
const shown = {
  model_id: "openai-compatible/qwen3-coder",
  version: 2,
  input_per_million_usd: 3,
  output_per_million_usd: 15,
  cache_read_per_million_usd: 0.3,
  cache_write_per_million_usd: null,
  effective_from: CREATED,
  created_at: UPDATED,
  created_by: { type: "user", uid: USER },
};
const PRICE = { model_id: "m", input_per_million_usd: 3, output_per_million_usd: 15 };

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

test("lists versions in pages, or of one model with the filter", async () => {
  api.respondWith({
    listModelPrices: { prices: [price, { ...price, createdByType: "", createdByUid: "" }], nextPageToken: "next" },
  });
  const query = "model_id=openai-compatible/qwen3-coder&limit=2&cursor=c";
  expect((await api.call("GET", `${PATH}?${query}`, { key: "of_no_team" })).body).toEqual({
    prices: [shown, { ...shown, created_by: null }],
    page_info: { has_next_page: true, next_cursor: "next" },
  });
  expect(api.calls[0]!.request).toMatchObject({ modelId: price.modelId, pageSize: 2, pageToken: "c" });
});

test("adds a version in whole micro-dollars, with the key of the request", async () => {
  api.respondWith({ addModelPrice: { price } });
  const body = { ...PRICE, cache_read_per_million_usd: 0, effective_from: "2026-12-01" };
  const answer = await api.call("POST", PATH, { body, key: "admin", headers: { "idempotency-key": "k" } });
  expect(answer).toMatchObject({ status: 201, body: shown });
  const { request } = api.calls[0]!;
  expect(request).toMatchObject({
    modelId: "m",
    inputMicros: 3_000_000n,
    outputMicros: 15_000_000n,
    cacheReadMicros: 0n,
    idempotencyKey: "k",
  });
  expect(request.cacheWriteMicros).toBeUndefined();
  expect(timestampDate(request.effectiveFrom)).toEqual(new Date("2026-12-01T00:00:00.000Z"));
});

testUpstreamErrors(
  () => api,
  () => api.call("GET", PATH),
  ["listModelPrices", upstreamError("invalid_argument", "invalid_cursor")],
);
testUpstreamErrors(
  () => api,
  () => api.call("POST", PATH, { body: PRICE }),
  [
    "addModelPrice",
    upstreamError("permission_denied", "not_authorized"),
    upstreamError("invalid_argument", "price_invalid"),
    upstreamError("conflict", "idempotency_mismatch"),
  ],
);
testRejectedBeforeUpstreams(() => api, 400, [
  ...[
    {},
    { ...PRICE, model_id: "" },
    { ...PRICE, model_id: "m".repeat(201) },
    { ...PRICE, input_per_million_usd: -1 },
    { ...PRICE, output_per_million_usd: "1" },
    { ...PRICE, cache_write_per_million_usd: 0.0000001 },
    { ...PRICE, effective_from: "tomorrow" },
  ].map((body) => ["POST", PATH, body] as const),
  ["GET", `${PATH}?limit=101`],
]);
