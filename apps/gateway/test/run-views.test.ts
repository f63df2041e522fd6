import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { eventually } from "@millwright/testing";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { RUN, TEAM } from "./support/people.ts";
import { aRun, at, CONVERSATION, CREATED } from "./support/records.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const path = (view: string) => `/api/v1/agent/runs/${RUN}/${view}`;
const get = (view: string, headers: Record<string, string> = {}) => api.call("GET", path(view), { headers });

describe("the timeline", () => {
  test("returns lifecycle events with their payloads", async () => {
    const [e1, e2, e3] = [1, 2, 3].map((n) => `0198c2d0-0000-7000-8000-0000000000${n}1`);
    const event = { eventUuid: e1, runUid: RUN, eventType: "oz_run_created", occurredAt: at(CREATED) };
    const session = { ...event, eventUuid: e3, eventType: "shared_session_started", payload: { session_id: "s" } };
    api.respondWith({
      getRun: { run: aRun() },
      getTimeline: {
        events: [
          event,
          { ...event, eventUuid: e2, eventType: "oz_run_claimed", executionId: 7n, payload: { worker_host: "w" } },
          session,
        ],
      },
    });
    const shown = { event_uuid: e1, run_id: RUN, event_type: "oz_run_created", occurred_at: CREATED };
    expect((await get("timeline")).body).toEqual({
      events: [
        shown,
        { ...shown, event_uuid: e2, event_type: "oz_run_claimed", execution_id: 7, payload: { worker_host: "w" } },
        {
          ...shown,
          event_uuid: e3,
          event_type: "shared_session_started",
          payload: {
            session_id: "s",
            session_link: api.links.sessionLink({ uid: RUN, ownerType: "team", ownerUid: TEAM }),
          },
        },
      ],
    });
    expect(api.calls[0]!.request).toMatchObject({ runUid: RUN });
  });
  testUpstreamErrors(
    () => api,
    () => get("timeline"),
    ["getTimeline", upstreamError("not_found", "run_not_found")],
  );
});

describe("the conversation", () => {
  test("returns nested steps unchanged", async () => {
    const inner = { id: "s2", messages: [{ role: "assistant", content: [{ type: "text", text: "<hi>" }] }], steps: [] };
    const steps = [{ id: "s1", messages: [], steps: [inner], description: "mend" }];
    api.respondWith({ getConversation: { conversationUid: CONVERSATION, steps } });
    expect((await get("conversation")).body).toEqual({ conversation_id: CONVERSATION, steps });
    expect(api.calls[0]!.request).toMatchObject({ runUid: RUN, conversationUid: "" });
  });
  test("of a queued run has no steps", async () => {
    api.respondWith({ getConversation: { conversationUid: CONVERSATION } });
    expect((await get("conversation")).body).toEqual({ conversation_id: CONVERSATION, steps: [] });
  });
  testUpstreamErrors(
    () => api,
    () => get("conversation"),
    [
      "getConversation",
      upstreamError("not_found", "run_not_found"),
      upstreamError("not_found", "conversation_not_found"),
      upstreamError("unsupported", "format_not_normalisable"),
    ],
  );
});

describe("the transcript", () => {
  test("redirects to a signed URL without caching", async () => {
    api.respondWith({ getTranscriptUrl: { url: "https://mill.example/blobs/t?sig=x" } });
    const { status, headers, body } = await get("transcript", { accept: "application/octet-stream" });
    expect([status, headers.get("location"), headers.get("cache-control"), body]).toEqual([
      302,
      "https://mill.example/blobs/t?sig=x",
      "no-store",
      "",
    ]);
  });
  testUpstreamErrors(
    () => api,
    () => get("transcript"),
    [
      "getTranscriptUrl",
      upstreamError("not_found", "run_not_found"),
      upstreamError("not_found", "transcript_not_found"),
    ],
  );
});

const anEvent = (seq: bigint, rest: object = {}) => ({
  seq,
  uid: `u${seq}`,
  kind: "message",
  occurredAt: at(CREATED),
  payload: { text: `line\n${seq}` },
  ...rest,
});
const shown = (seq: number) => ({
  seq,
  uid: `u${seq}`,
  kind: "message",
  occurred_at: CREATED,
  payload: { text: `line\n${seq}` },
});

describe("events as pages", () => {
  test("continue after the last seq of a page", async () => {
    api.respondWith({
      listRunEvents: { events: [anEvent(1n), anEvent(2n, { executionId: 7n, attempt: 1 })], hasMore: true },
    });
    const { body } = await get("events?limit=2");
    expect(body).toEqual({
      events: [shown(1), { ...shown(2), execution_id: 7, attempt: 1 }],
      page_info: { has_next_page: true, next_cursor: expect.any(String) },
    });
    expect(api.calls[0]!.request).toMatchObject({ runUid: RUN, afterSeq: 0n, pageSize: 2 });
    api.respondWith({ listRunEvents: { events: [], hasMore: false } });
    const cursor = body.page_info.next_cursor;
    await get(`events?limit=500&after=1&cursor=${cursor}`);
    expect(api.calls[0]!.request).toMatchObject({ runUid: RUN, afterSeq: 2n, pageSize: 500 });
    expect(await api.call("GET", path(`events?cursor=${cursor}`).replace(RUN, newUid()))).toMatchObject({
      status: 400,
      body: { reason: "invalid_cursor" },
    });
    expect(api.calls).toHaveLength(1);
  });
  test.each([
    ["events", 0n, 100],
    ["events?after=5", 5n, 100],
  ])("%s starts after seq %i", async (view, afterSeq, pageSize) => {
    api.respondWith({ listRunEvents: { events: [], hasMore: false } });
    expect((await get(view)).body).toEqual({ events: [], page_info: { has_next_page: false } });
    expect(api.calls[0]!.request).toMatchObject({ afterSeq, pageSize });
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [
      "after=-1",
      "after=x",
      "after=1e3",
      "after=99999999999999999999",
      "limit=0",
      "limit=501",
      "cursor=x",
      "cursor=2",
    ].map((query) => ["GET", path(`events?${query}`)] as const),
  );
  testUpstreamErrors(
    () => api,
    () => get("events"),
    ["listRunEvents", upstreamError("not_found", "run_not_found")],
  );
});

describe("events as a stream", () => {
  const live = { accept: "text/event-stream" };
  /** Skips validation, because the OpenAPI document describes pages, not streams. */
  const watch = (view = "events", headers: Record<string, string> = {}) =>
    api.call("GET", path(view), { headers: { ...live, ...headers }, skipValidation: true });

  test("are read with the trace of the request until the run ends", async () => {
    api.respondWith({
      getRun: { run: aRun() },
      watchRunEvents: () => [{ events: [anEvent(1n)] }, { events: [anEvent(2n)] }],
    });
    await watch("events", { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01` });
    expect(api.calls.map(({ method, traceId }) => [method, traceId[0]])).toEqual([
      ["getRun", "a"],
      ["watchRunEvents", "a"],
      ["getRun", "a"],
      ["getRun", "a"],
    ]);
  });

  test("include deltas of the model's text, without an id", async () => {
    const delta = { executionId: 3n, attempt: 1, stepId: "s", offset: 5, text: "I look." };
    api.respondWith({ getRun: { run: aRun() }, watchRunEvents: () => [{ texts: [delta] }, { events: [anEvent(1n)] }] });
    const { body } = await watch();
    expect(body).toContain(
      `: open\n\nevent: text_delta\ndata: ${JSON.stringify({ execution_id: 3, attempt: 1, step_id: "s", offset: 5, text: "I look." })}\n\nid: 1\n`,
    );
  });

  test("have the JSON of pages, the seq as id, and an end event", async () => {
    api.respondWith({
      getRun: { run: aRun() },
      watchRunEvents: () => [{ events: [anEvent(1n), anEvent(2n)] }, { events: [] }, { events: [anEvent(3n)] }],
    });
    const { status, headers, body } = await watch();
    expect([
      status,
      headers.get("content-type"),
      headers.get("cache-control"),
      headers.get("x-accel-buffering"),
    ]).toEqual([200, "text/event-stream; charset=utf-8", "no-store", "no"]);
    const block = (seq: number) => `id: ${seq}\nevent: message\ndata: ${JSON.stringify(shown(seq))}\n\n`;
    expect(body).toBe(`: open\n\n${block(1)}${block(2)}: keep-alive\n\n${block(3)}event: end\ndata: {}\n\n`);
  });
  test.each([
    ["events?after=4", {}, 4n],
    ["events?after=4", { "last-event-id": "9" }, 9n],
    ["events", { "last-event-id": "9" }, 9n],
    ["events?after=4", { "last-event-id": "nonsense" }, 4n],
    ["events", { "last-event-id": "-1" }, 0n],
  ])("%s %j resume after seq %i", async (view, headers, afterSeq) => {
    api.respondWith({ getRun: { run: aRun() }, watchRunEvents: () => [] });
    expect((await watch(view, headers as Record<string, string>)).status).toBe(200);
    expect(api.calls.find((call) => call.method === "watchRunEvents")).toMatchObject({
      request: { runUid: RUN, afterSeq },
    });
  });
  test("end without an end event if the source fails, so that the client reconnects", async () => {
    api.respondWith({
      getRun: { run: aRun() },
      async *watchRunEvents() {
        yield { events: [anEvent(1n)] };
        throw upstreamError("unavailable", "stopping");
      },
    });
    const { body } = await watch();
    expect(body).toContain("id: 1\n");
    expect(body).not.toContain("event: end");
  });
  test("stop without an end event when the caller loses access to the run", async () => {
    let reads = 0;
    api.respondWith({
      getRun: () => {
        if ((reads += 1) > 2) throw upstreamError("not_found", "run_not_found");
        return { run: aRun() };
      },
      watchRunEvents: () => [{ events: [anEvent(1n)] }, { events: [anEvent(2n)] }],
    });
    const { body } = await watch();
    expect([body.includes("id: 1\n"), body.includes("id: 2\n"), body.includes("event: end")]).toEqual([
      true,
      false,
      false,
    ]);
  });
  test("return a problem instead of a stream for a hidden run", async () => {
    api.respondWith({ getRun: upstreamError("not_found", "run_not_found") });
    expect(await watch()).toMatchObject({ status: 404, body: { reason: "run_not_found" } });
    expect(api.calls.map((call) => call.method)).toEqual(["getRun"]);
  });
  test("stop at the source when the client disconnects", async () => {
    api.respondWith({
      getRun: { run: aRun() },
      async *watchRunEvents() {
        for (;;) {
          yield { events: [] };
          await new Promise((resolve) => setImmediate(resolve));
        }
      },
    });
    const reader = new AbortController();
    const response = await fetch(`${api.url}${path("events")}`, {
      headers: { ...live, authorization: "Bearer member" },
      signal: reader.signal,
    });
    expect(response.status).toBe(200);
    reader.abort();
    await eventually(() => api.calls.find((call) => call.method === "watchRunEvents")!.signal.aborted);
  });
});

describe("a malformed run id", () => {
  testRejectedBeforeUpstreams(
    () => api,
    404,
    ["timeline", "conversation", "transcript", "events"].map(
      (view) => ["GET", `/api/v1/agent/runs/x/${view}`] as const,
    ),
  );
});
