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
const AUTOMATION = "0198c2d0-0000-7000-8000-0000000000a1";
const HOOK = "0198c2d0-0000-7000-8000-0000000000b1";
const DELIVERY = "0198c2d0-0000-7000-8000-0000000000d1";
const LIST = `/api/v1/factory/${FACTORY}/automations`;
const ONE = `${LIST}/${AUTOMATION}`;
const time = { seconds: 1_795_168_800n, nanos: 5_000_000 };
const AT = "2026-11-20T10:00:00.005Z";
const triggers = [
  { provider: "webhook", event: "received", filter: { webhook_ids: { in: [HOOK] } }, payload: { kind: ["a"] } },
  { provider: "schedule", event: "cron_fired", filter: {}, schedule: { cron: "@daily" } },
];
const automation = {
  uid: AUTOMATION,
  factoryUid: FACTORY,
  teamUid: "t",
  name: "alerts",
  enabled: true,
  prompt: "Look.",
  definition: { triggers, model: "auto" },
  management: "live",
  createdAt: time,
  updatedAt: time,
};
const shown = {
  uid: AUTOMATION,
  factory_uid: FACTORY,
  name: "alerts",
  enabled: true,
  disabled_reason: null,
  agent: null,
  prompt: "Look.",
  model: "auto",
  management: "live",
  created_at: AT,
  updated_at: AT,
  last_fired_at: null,
  triggers: [
    { provider: "webhook", event: "received", filter: { webhook_ids: { in: [HOOK] }, payload: { kind: ["a"] } } },
    { provider: "schedule", event: "cron_fired", schedule: { cron: "@daily" } },
  ],
};
const decision = {
  eventUid: DELIVERY,
  automationUid: AUTOMATION,
  automationName: "alerts",
  provider: "webhook",
  event: "received",
  outcome: "not_matched",
  explanation: "No.",
  checks: [{ trigger: 0, passed: false, detail: "No.", failed: ["kind"] }],
  subject: { delivery_id: "x" },
  occurredAt: time,
  decidedAt: time,
};
const decided = {
  event_uid: DELIVERY,
  automation_uid: AUTOMATION,
  automation: "alerts",
  provider: "webhook",
  event: "received",
  outcome: "not_matched",
  explanation: "No.",
  checks: decision.checks,
  run_id: null,
  subject: { delivery_id: "x" },
  occurred_at: AT,
  decided_at: AT,
  next_attempt_at: null,
};
const body = { name: "alerts", prompt: "Look.", triggers: shown.triggers, enabled: true };

describe("automations", () => {
  test("are listed, created, read, replaced and deleted", async () => {
    api.respondWith({
      listAutomations: { automations: [{ ...automation, agent: "hand", lastFiredAt: time }], nextPageToken: "next" },
    });
    expect((await api.call("GET", `${LIST}?limit=1&cursor=c`)).body).toEqual({
      automations: [{ ...shown, agent: "hand", last_fired_at: AT }],
      page_info: { has_next_page: true, next_cursor: "next" },
    });
    expect(api.calls[0]!.request).toMatchObject({ factoryUid: FACTORY, pageSize: 1, pageToken: "c" });
    api.respondWith({ createAutomation: { automation } });
    expect(
      await api.call("POST", LIST, {
        body: { ...body, agent: null, colour: "red" },
        headers: { "idempotency-key": "k" },
      }),
    ).toMatchObject({ status: 201, body: shown });
    expect(api.calls[0]!.request).toMatchObject({
      factoryUid: FACTORY,
      idempotencyKey: "k",
      automation: { name: "alerts", prompt: "Look.", enabled: true, triggers: shown.triggers },
    });
    expect((api.calls[0]!.request as { automation: object }).automation).not.toHaveProperty("colour");
    expect((api.calls[0]!.request as { automation: object }).automation).not.toHaveProperty("agent");
    api.respondWith({ getAutomation: { automation } });
    expect((await api.call("GET", ONE)).body).toEqual(shown);
    api.respondWith({ replaceAutomation: { automation } });
    expect((await api.call("PUT", ONE, { body: { ...body, agent: "hand" } })).body).toEqual(shown);
    expect(api.calls[0]!.request).toMatchObject({
      factoryUid: FACTORY,
      automationUid: AUTOMATION,
      automation: { agent: "hand" },
    });
    api.respondWith({ deleteAutomation: {} });
    expect((await api.call("DELETE", ONE)).status).toBe(204);
  });

  test("are run on request and return why they fired or not", async () => {
    api.respondWith({ runAutomation: { decision: { ...decision, outcome: "fired", runUid: "r-1" } } });
    expect(await api.call("POST", `${ONE}/run`, { headers: { "idempotency-key": "k" } })).toMatchObject({
      status: 201,
      body: { ...decided, outcome: "fired", run_id: "r-1" },
    });
    expect(api.calls[0]!.request).toMatchObject({
      factoryUid: FACTORY,
      automationUid: AUTOMATION,
      idempotencyKey: "k",
    });
    for (const [path, automationUid] of [
      [`${ONE}/decisions`, AUTOMATION],
      [`/api/v1/factory/${FACTORY}/decisions`, ""],
    ] as const) {
      api.respondWith({ listDecisions: { decisions: [decision], nextPageToken: "" } });
      expect((await api.call("GET", `${path}?event_uid=${DELIVERY.toUpperCase()}&limit=2`)).body).toEqual({
        decisions: [decided],
        page_info: { has_next_page: false },
      });
      expect(api.calls[0]!.request).toMatchObject({
        factoryUid: FACTORY,
        automationUid,
        eventUid: DELIVERY,
        pageSize: 2,
      });
    }
  });

  test("replay a delivery", async () => {
    api.respondWith({ replayDelivery: { decision: { ...decision, eventUid: "" }, wouldTrigger: true } });
    const answer = await api.call("POST", `/api/v1/factory/${FACTORY}/webhooks/${HOOK}/deliveries/${DELIVERY}/replay`, {
      body: { automation_uid: AUTOMATION, dry_run: true },
    });
    expect(answer).toMatchObject({
      status: 200,
      body: { would_trigger: true, label: "Would trigger", decision: { ...decided, event_uid: "" } },
    });
    expect(api.calls[0]!.request).toMatchObject({
      factoryUid: FACTORY,
      webhookUid: HOOK,
      deliveryUid: DELIVERY,
      automationUid: AUTOMATION,
      dryRun: true,
    });
  });

  testRejectedBeforeUpstreams(() => api, 400, [
    ["POST", LIST, { ...body, name: "" }],
    ["POST", LIST, { ...body, triggers: [] }],
    ["POST", LIST, { ...body, prompt: 1 }],
    ["PUT", ONE, { name: "x", prompt: "y", triggers: shown.triggers }],
    ["GET", `${LIST}?limit=0`],
    ["GET", `${ONE}/decisions?event_uid=x`],
    ["POST", `/api/v1/factory/${FACTORY}/webhooks/${HOOK}/deliveries/${DELIVERY}/replay`, {}],
  ]);
  testRejectedBeforeUpstreams(() => api, 404, [
    ["GET", `${LIST}/nonsense`],
    ["POST", `${LIST}/nonsense/run`],
    ["GET", "/api/v1/factory/nonsense/decisions"],
  ]);
  testUpstreamErrors(
    () => api,
    () => api.call("PUT", ONE, { body }),
    [
      "replaceAutomation",
      upstreamError("not_found", "automation_not_found"),
      upstreamError("conflict", "managed_by_files"),
      upstreamError("invalid_argument", "invalid_automation"),
      upstreamError("permission_denied", "not_authorized"),
    ],
  );
});
