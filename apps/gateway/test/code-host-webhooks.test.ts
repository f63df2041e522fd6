import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { OTHER_TEAM, TEAM } from "./support/people.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const HOST = "0198c2d0-0000-7000-8000-00000000d001";
const ENTRY = "0198c2d0-0000-7000-8000-0000000000d1";
const [FACTORY, AUTOMATION] = ["0198c2d0-0000-7000-8000-00000000f001", "0198c2d0-0000-7000-8000-00000000a001"];
const time = { seconds: 1_795_168_800n, nanos: 5_000_000 };
const AT = "2026-11-20T10:00:00.005Z";
const ref = { teamUid: TEAM, codeHostUid: HOST };
const PATH = `/api/v1/team/${TEAM}/code-hosts/${HOST}/webhook`;

const codeHost = {
  uid: HOST,
  teamUid: TEAM,
  name: "hub",
  kind: "github",
  baseUrl: "https://api.github.com",
  root: "",
  secretName: "",
  owners: [],
  createdAt: time,
};
const known = { listCodeHosts: { codeHosts: [codeHost] } };
const webhook = {
  codeHostUid: HOST,
  teamUid: TEAM,
  provider: "github",
  botLogin: "",
  enabled: true,
  ingressUrl: `https://x/webhooks/c/${HOST}`,
  createdAt: time,
  updatedAt: time,
};
const shown = {
  code_host_uid: HOST,
  provider: "github",
  ingress_url: `https://x/webhooks/c/${HOST}`,
  enabled: true,
  bot_login: null,
  created_at: AT,
  updated_at: AT,
  last_delivery_at: null,
};
const delivery = {
  uid: ENTRY,
  codeHostUid: HOST,
  provider: "github",
  event: "issues",
  action: "opened",
  deliveryId: "g1",
  outcome: "accepted",
  sizeBytes: 7n,
  receivedAt: time,
};
const asked = () => api.calls.at(-1);

describe("the receiver of a code host's webhooks", () => {
  test("is created with a secret that is returned once, changed, read, rotated and deleted", async () => {
    api.respondWith({ ...known, putCodeHostWebhook: { webhook, secret: "once" } });
    const opened = await api.call("PUT", PATH);
    expect([opened.status, opened.body, opened.headers.get("cache-control")]).toEqual([
      200,
      { ...shown, secret: "once" },
      "no-store",
    ]);
    expect(asked()?.request).toMatchObject({ ...ref, provider: "github" });
    expect([asked()?.request.enabled, asked()?.request.botLogin]).toEqual([undefined, undefined]);
    api.respondWith({
      ...known,
      putCodeHostWebhook: {
        webhook: { ...webhook, botLogin: "mill[bot]", enabled: false, lastDeliveryAt: time },
        secret: "",
      },
    });
    expect((await api.call("PUT", PATH, { body: { enabled: false, bot_login: "mill[bot]" } })).body).toEqual({
      ...shown,
      enabled: false,
      bot_login: "mill[bot]",
      last_delivery_at: AT,
    });
    expect(asked()?.request).toMatchObject({ ...ref, enabled: false, botLogin: "mill[bot]" });
    await api.call("PUT", PATH, { body: { bot_login: null } });
    expect(asked()?.request.botLogin).toBe("");
    api.respondWith({ ...known, getCodeHostWebhook: { webhook } });
    expect(await api.call("GET", PATH)).toMatchObject({ status: 200, body: shown });
    api.respondWith({ ...known, rotateCodeHostSecret: { webhook, secret: "new" } });
    expect(await api.call("POST", `${PATH}/rotate`)).toMatchObject({ status: 200, body: { ...shown, secret: "new" } });
    expect(asked()?.request).toMatchObject({ ...ref, secret: "" });
    api.respondWith({ ...known, rotateCodeHostSecret: { webhook, secret: "" } });
    expect("secret" in (await api.call("POST", `${PATH}/rotate`, { body: { secret: "theirs" } })).body).toBe(false);
    expect(asked()?.request).toMatchObject({ ...ref, secret: "theirs" });
    api.respondWith({ ...known, deleteCodeHostWebhook: {} });
    expect((await api.call("DELETE", PATH)).status).toBe(204);
  });
  test("replays its deliveries", async () => {
    const decision = {
      eventUid: "",
      automationUid: AUTOMATION,
      automationName: "a",
      provider: "github",
      event: "replayed",
      outcome: "pending",
      explanation: "It matches.",
      checks: [],
      occurredAt: time,
      decidedAt: time,
    };
    api.respondWith({ ...known, replayDelivery: { decision, wouldTrigger: true } });
    const answer = await api.call("POST", `${PATH}/deliveries/${ENTRY}/replay`, {
      body: { factory_uid: FACTORY, automation_uid: AUTOMATION, dry_run: true },
    });
    expect(answer).toMatchObject({
      status: 200,
      body: {
        would_trigger: true,
        label: "Would trigger",
        decision: { automation_uid: AUTOMATION, outcome: "pending", event_uid: "" },
      },
    });
    expect(asked()?.request).toMatchObject({
      codeHostUid: HOST,
      webhookUid: "",
      deliveryUid: ENTRY,
      factoryUid: FACTORY,
      automationUid: AUTOMATION,
      dryRun: true,
    });
    const absent = await api.call("POST", `${PATH.replace(HOST, ENTRY)}/deliveries/${ENTRY}/replay`, {
      body: { factory_uid: FACTORY, automation_uid: AUTOMATION },
    });
    expect(absent).toMatchObject({ status: 404, body: { reason: "code_host_not_found" } });
  });
  test("lists deliveries and returns payloads byte for byte, also of forms", async () => {
    api.respondWith({
      ...known,
      listCodeHostDeliveries: {
        deliveries: [delivery, { ...delivery, event: "", action: "", deliveryId: "", outcome: "rejected_auth" }],
        nextPageToken: "next",
      },
    });
    const entry = {
      uid: ENTRY,
      code_host_uid: HOST,
      provider: "github",
      event: "issues",
      action: "opened",
      delivery_id: "g1",
      label: "Accepted",
      outcome: "accepted",
      size_bytes: 7,
      received_at: AT,
    };
    expect((await api.call("GET", `${PATH}/deliveries?limit=2&cursor=c`)).body).toEqual({
      deliveries: [
        entry,
        { ...entry, event: null, action: null, delivery_id: null, label: "Rejected (auth)", outcome: "rejected_auth" },
      ],
      page_info: { has_next_page: true, next_cursor: "next" },
    });
    expect(asked()?.request).toMatchObject({ ...ref, pageSize: 2, pageToken: "c" });
    const payload = '{"n":12345678901234567890,"x":"\\u00e9"}';
    const read = async (headers: Record<string, string>, body: string | undefined) => {
      api.respondWith({
        ...known,
        getCodeHostDelivery: { delivery, headers, ...(body !== undefined && { body: Buffer.from(body) }) },
      });
      return api.call("GET", `${PATH}/deliveries/${ENTRY}`);
    };
    for (const [type, body] of [
      ["application/json", payload],
      ["application/x-www-form-urlencoded", new URLSearchParams({ payload }).toString()],
    ] as const) {
      expect((await read({ "content-type": type }, body)).body).toMatchObject({
        ...entry,
        headers: { "content-type": type },
        payload: { x: "é" },
      });
    }
    expect("payload" in (await read({}, undefined)).body).toBe(false);
  });
  test("does not exist for local repositories", async () => {
    api.respondWith({ listCodeHosts: { codeHosts: [{ ...codeHost, kind: "local" }] } });
    expect(await api.call("PUT", PATH)).toMatchObject({ status: 422, body: { reason: "code_host_sends_nothing" } });
  });
  test("is removed before its connection, which remains if the removal fails", async () => {
    api.respondWith({ ...known, removeCodeHost: {}, deleteCodeHost: {} });
    expect((await api.call("DELETE", PATH.replace("/webhook", ""))).status).toBe(204);
    expect(api.calls.map(({ method }) => method)).toEqual(["listCodeHosts", "removeCodeHost", "deleteCodeHost"]);
    api.respondWith({ ...known, removeCodeHost: upstreamError("unavailable", "unreachable") });
    expect((await api.call("DELETE", PATH.replace("/webhook", ""))).status).toBe(500);
    expect(api.calls.map(({ method }) => method)).not.toContain("deleteCodeHost");
  });
  const every = [
    ["GET", PATH],
    ["PUT", PATH],
    ["DELETE", PATH],
    ["POST", `${PATH}/rotate`],
    ["GET", `${PATH}/deliveries`],
    ["GET", `${PATH}/deliveries/${ENTRY}`],
  ] as const;
  test.each(every)("%s %s of another team's connection is like that of an absent one", async (method, path) => {
    api.respondWith({ listCodeHosts: { codeHosts: [{ ...codeHost, uid: ENTRY }] } });
    expect(await api.call(method, path)).toMatchObject({ status: 404, body: { reason: "code_host_not_found" } });
    expect(api.calls.map((call) => call.method)).toEqual(["listCodeHosts"]);
    api.respondWith({ listCodeHosts: { codeHosts: [] } });
    expect(await api.call(method, path.replace(TEAM, OTHER_TEAM))).toMatchObject({
      status: 404,
      body: { reason: "code_host_not_found" },
    });
  });
  testRejectedBeforeUpstreams(() => api, 404, [
    ["GET", PATH.replace(HOST, "x")],
    ["GET", `${PATH}/deliveries/x`],
    ["GET", PATH.replace(TEAM, "x")],
  ]);
  testRejectedBeforeUpstreams(() => api, 400, [
    ["PUT", PATH, { enabled: "yes" }],
    ["POST", `${PATH}/rotate`, { secret: "" }],
    ["GET", `${PATH}/deliveries?limit=0`],
    ["POST", `${PATH}/deliveries/${ENTRY}/replay`, { automation_uid: AUTOMATION }],
  ]);
  testUpstreamErrors(
    () => api,
    () => api.call("PUT", PATH, { body: { bot_login: "@x" } }),
    [
      "putCodeHostWebhook",
      upstreamError("invalid_argument", "invalid_code_host_webhook"),
      upstreamError("not_found", "code_host_not_found"),
      upstreamError("permission_denied", "not_authorized"),
    ],
    known,
  );
  testUpstreamErrors(
    () => api,
    () => api.call("POST", `${PATH}/rotate`),
    [
      "rotateCodeHostSecret",
      upstreamError("not_found", "code_host_webhook_not_found"),
      upstreamError("invalid_argument", "invalid_secret"),
    ],
    known,
  );
  testUpstreamErrors(
    () => api,
    () => api.call("GET", `${PATH}/deliveries?cursor=c`),
    ["listCodeHostDeliveries", upstreamError("invalid_argument", "invalid_cursor")],
    known,
  );
});
