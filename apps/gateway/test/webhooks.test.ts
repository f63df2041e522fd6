import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const FACTORY = "0198c2d0-0000-7000-8000-0000000000f1";
const HOOK = "0198c2d0-0000-7000-8000-0000000000a1";
const ENTRY = "0198c2d0-0000-7000-8000-0000000000d1";
const time = { seconds: 1_795_168_800n, nanos: 5_000_000 };
const webhook = {
  uid: HOOK,
  factoryUid: FACTORY,
  teamUid: "t",
  name: "ci",
  authMode: "signature",
  signatureScheme: "github",
  secretSet: true,
  enabled: true,
  ingressUrl: `https://x/webhooks/w/${HOOK}`,
  management: "live",
  createdAt: time,
  updatedAt: time,
};
const shown = {
  uid: HOOK,
  factory_uid: FACTORY,
  name: "ci",
  auth_mode: "signature",
  signature_scheme: "github",
  signature_header: null,
  signature_prefix: null,
  secret_name: null,
  secret_set: true,
  delivery_id_header: null,
  enabled: true,
  ingress_url: `https://x/webhooks/w/${HOOK}`,
  management: "live",
  created_at: "2026-11-20T10:00:00.005Z",
  updated_at: "2026-11-20T10:00:00.005Z",
  last_delivery_at: null,
};
const delivery = {
  uid: ENTRY,
  webhookUid: HOOK,
  deliveryId: "",
  outcome: "rejected_auth",
  sizeBytes: 7n,
  receivedAt: time,
};

/** Both forms of the paths, and the resulting request to the webhook ingress. */
const SPELLINGS = [
  [`/api/v1/factory/${FACTORY}/webhooks/${HOOK}`, { factoryUid: FACTORY, webhookUid: HOOK }],
  [`/api/v1/factory/webhooks/${HOOK}`, { factoryUid: "", webhookUid: HOOK }],
] as const;

describe.each(SPELLINGS)("%s", (path, ref) => {
  test("is read, replaced, rotated and deleted", async () => {
    api.respondWith({ getWebhook: { webhook } });
    expect(await api.call("GET", path)).toMatchObject({ status: 200, body: shown });
    expect(api.calls[0]!.request).toMatchObject(ref);
    api.respondWith({ replaceWebhook: { webhook: { ...webhook, lastDeliveryAt: time } } });
    expect(
      (await api.call("PUT", path, { body: { name: "ci", enabled: true, delivery_id_header: null } })).body,
    ).toEqual({ ...shown, last_delivery_at: shown.created_at });
    expect(api.calls[0]!.request).toMatchObject({ ...ref, name: "ci", deliveryIdHeader: "", enabled: true });
    api.respondWith({ rotateSecret: { webhook, secret: "new" } });
    const rotated = await api.call("POST", `${path}/rotate`);
    expect(rotated).toMatchObject({ status: 200, body: { ...shown, secret: "new" } });
    expect(rotated.headers.get("cache-control")).toBe("no-store");
    api.respondWith({ rotateSecret: { webhook, secret: "" } });
    expect("secret" in (await api.call("POST", `${path}/rotate`, { body: { secret: "theirs" } })).body).toBe(false);
    expect(api.calls[0]!.request).toMatchObject({ ...ref, secret: "theirs" });
    api.respondWith({ deleteWebhook: {} });
    expect((await api.call("DELETE", path)).status).toBe(204);
  });
  test("lists deliveries and returns payloads byte for byte", async () => {
    api.respondWith({ listDeliveries: { deliveries: [delivery], nextPageToken: "next" } });
    const list = await api.call("GET", `${path}/deliveries?limit=1&cursor=c`);
    expect(list.body).toEqual({
      deliveries: [
        {
          uid: ENTRY,
          webhook_uid: HOOK,
          delivery_id: null,
          label: "Rejected (auth)",
          outcome: "rejected_auth",
          size_bytes: 7,
          received_at: shown.created_at,
          runs: [],
        },
      ],
      page_info: { has_next_page: true, next_cursor: "next" },
    });
    expect(api.calls[0]!.request).toMatchObject({ ...ref, pageSize: 1, pageToken: "c" });
    const payload = '{"n":1.0,"n":12345678901234567890, "x":"\\u00e9"}';
    const runs = { runs: [{ eventUid: ENTRY, automationUid: "a-1", automationName: "alerts", runUid: "r-1" }] };
    api.respondWith({
      getDelivery: {
        delivery: { ...delivery, outcome: "accepted", deliveryId: "id", factoryUid: FACTORY },
        payload: Buffer.from(payload),
      },
      listEventRuns: runs,
    });
    const one = await api.call("GET", `${path}/deliveries/${ENTRY}`);
    expect(one.body).toMatchObject({
      label: "Accepted",
      delivery_id: "id",
      payload: { x: "é" },
      runs: [{ automation: "alerts", automation_uid: "a-1", run_id: "r-1" }],
    });
    expect(api.calls[1]!.request).toMatchObject({ factoryUid: FACTORY, eventUids: [ENTRY] });
    expect(api.calls[0]!.request).toMatchObject({ ...ref, deliveryUid: ENTRY });
    api.respondWith({
      getDelivery: { delivery: { ...delivery, outcome: "accepted", factoryUid: FACTORY } },
      listEventRuns: upstreamError("permission_denied", "not_authorized"),
    });
    expect(await api.call("GET", `${path}/deliveries/${ENTRY}`)).toMatchObject({ status: 200, body: { runs: [] } });
    api.respondWith({ getDelivery: { delivery } });
    expect("payload" in (await api.call("GET", `${path}/deliveries/${ENTRY}`)).body).toBe(false);
  });
  testRejectedBeforeUpstreams(() => api, 400, [
    ["PUT", path, { enabled: true }],
    ["PUT", path, { name: "x" }],
    ["PUT", path, { name: "", enabled: true }],
    ["POST", `${path}/rotate`, { secret: "" }],
    ["GET", `${path}/deliveries?limit=0`],
  ]);
  testRejectedBeforeUpstreams(() => api, 404, [
    ["GET", path.replace(HOOK, "nonsense")],
    ["GET", `${path}/deliveries/nonsense`],
  ]);
  testUpstreamErrors(
    () => api,
    () => api.call("PUT", path, { body: { name: "x", enabled: true } }),
    [
      "replaceWebhook",
      upstreamError("not_found", "webhook_not_found"),
      upstreamError("conflict", "secret_missing"),
      upstreamError("conflict", "managed_by_files"),
      upstreamError("permission_denied", "not_authorized"),
    ],
  );
});

describe.each([
  [`/api/v1/factory/${FACTORY}/webhooks`, "", {}, "test-filter"],
  ["/api/v1/factory/webhooks", `?factory_uid=${FACTORY}`, { factory_uid: FACTORY }, "dry-run"],
])("%s", (path, query, named, verb) => {
  test("lists, and creates with a secret that is returned once", async () => {
    api.respondWith({ listWebhooks: { webhooks: [webhook] } });
    expect((await api.call("GET", path + query)).body).toEqual({
      webhooks: [shown],
      page_info: { has_next_page: false },
    });
    expect(api.calls[0]!.request).toMatchObject({ factoryUid: FACTORY });
    api.respondWith({ createWebhook: { webhook, secret: "once" } });
    const made = await api.call("POST", path, {
      body: {
        ...named,
        name: "ci",
        auth_mode: "signature",
        signature_scheme: "github",
        delivery_id_header: "X-Id",
        secret: "s",
      },
      headers: { "idempotency-key": "k" },
    });
    expect([made.status, made.body, made.headers.get("cache-control")]).toEqual([
      201,
      { ...shown, secret: "once" },
      "no-store",
    ]);
    expect(api.calls[0]!.request).toMatchObject({
      webhook: {
        factoryUid: FACTORY,
        name: "ci",
        authMode: "signature",
        signatureScheme: "github",
        deliveryIdHeader: "X-Id",
        secretName: "",
        enabled: true,
      },
      secret: "s",
      idempotencyKey: "k",
    });
  });
  test("tests filters on stored deliveries and on bodies", async () => {
    api.respondWith({
      testFilter: {
        wouldTrigger: false,
        webhook: { passed: true, detail: "w" },
        payload: { passed: false, detail: "p" },
        failedPaths: ["a.b"],
      },
    });
    const tested = await api.call("POST", `${path}/${verb}`, {
      body: { ...named, webhook_ids: [HOOK], payload_filter: { a: { b: [1] } }, delivery_uid: ENTRY },
    });
    expect(tested.body).toEqual({
      would_trigger: false,
      label: "Would not trigger",
      checks: {
        webhook: { passed: true, detail: "w" },
        payload: { passed: false, detail: "p", failed_paths: ["a.b"] },
      },
    });
    expect(api.calls[0]!.request).toMatchObject({
      factoryUid: FACTORY,
      webhookUids: [HOOK],
      payloadFilter: '{"a":{"b":[1]}}',
      deliveryUid: ENTRY,
    });
    api.respondWith({ testFilter: { wouldTrigger: true } });
    expect(
      (await api.call("POST", `${path}/${verb}`, { body: { ...named, webhook_ids: [HOOK], payload: null } })).body
        .label,
    ).toBe("Would trigger");
    expect(Buffer.from(api.calls[0]!.request.payload).toString()).toBe("null");
  });
  testRejectedBeforeUpstreams(() => api, 400, [
    ["POST", path, { ...named }],
    ["POST", path, { ...named, name: "x", auth_mode: "basic" }],
    ["POST", `${path}/${verb}`, { ...named, webhook_ids: ["x"] }],
    ["POST", `${path}/${verb}`, { ...named, webhook_ids: [] }],
  ]);
  testUpstreamErrors(
    () => api,
    () => api.call("POST", path, { body: { ...named, name: "x" } }),
    [
      "createWebhook",
      upstreamError("not_found", "factory_not_found"),
      upstreamError("conflict", "too_many_webhooks"),
      upstreamError("invalid_argument", "invalid_webhook"),
      upstreamError("conflict", "managed_by_files"),
    ],
  );
  testUpstreamErrors(
    () => api,
    () => api.call("POST", `${path}/${verb}`, { body: { ...named, webhook_ids: [HOOK] } }),
    [
      "testFilter",
      upstreamError("invalid_argument", "invalid_filter"),
      upstreamError("invalid_argument", "payload_not_stored"),
      upstreamError("not_found", "delivery_not_found"),
    ],
  );
});

test("the published list contains the factory", async () =>
  expect((await api.call("GET", "/api/v1/factory/webhooks")).status).toBe(400));
