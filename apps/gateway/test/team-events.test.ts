import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { RUN, TEAM } from "./support/people.ts";
import { aRun, at, CREATED } from "./support/records.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const PATH = "/api/v1/agent/events";
const anEvent = (sequence: bigint, teamUid: string = TEAM) => ({
  sequence,
  uid: `u${sequence}`,
  teamUid,
  runUid: RUN,
  eventType: "run_succeeded",
  occurredAt: at(CREATED),
});
const shown = (sequence: number) => ({
  sequence,
  uid: `u${sequence}`,
  event_type: "run_succeeded",
  run_id: RUN,
  occurred_at: CREATED,
});

describe("a team's events as pages", () => {
  const get = (query = "", headers: Record<string, string> = {}) => api.call("GET", `${PATH}${query}`, { headers });
  test("continue after the last sequence of a page", async () => {
    api.respondWith({ listTeamEvents: { events: [anEvent(3n), anEvent(9n)], hasMore: true } });
    const { body } = await get("?limit=2");
    expect(body).toEqual({
      events: [shown(3), shown(9)],
      page_info: { has_next_page: true, next_cursor: expect.any(String) },
    });
    expect(api.calls[0]!.request).toMatchObject({ teamUid: "", runUids: [], afterSequence: 0n, pageSize: 2 });
    api.respondWith({ listTeamEvents: { events: [], hasMore: false } });
    const cursor = body.page_info.next_cursor;
    await get(`?limit=500&since=5&cursor=${cursor}`);
    expect(api.calls[0]!.request).toMatchObject({ afterSequence: 9n, pageSize: 500 });
    expect(await get(`?run_ids=a&cursor=${cursor}`)).toMatchObject({ status: 400, body: { reason: "invalid_cursor" } });
    expect(api.calls).toHaveLength(1);
  });
  test.each([
    ["", 0n, 100],
    ["?since=5", 5n, 100],
  ])("%s starts after %i", async (query, afterSequence, pageSize) => {
    api.respondWith({ listTeamEvents: { events: [], hasMore: false } });
    expect((await get(query)).body).toEqual({ events: [], page_info: { has_next_page: false } });
    expect(api.calls[0]!.request).toMatchObject({ afterSequence, pageSize });
  });
  test("are limited to the active team and the given runs", async () => {
    api.respondWith({ listTeamEvents: { events: [], hasMore: false } });
    await get("?run_ids=a&run_ids=b", { "x-service-team-uid": TEAM });
    expect(api.calls[0]!.request).toMatchObject({ teamUid: TEAM, runUids: ["a", "b"] });
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [
      "since=-1",
      "since=x",
      "limit=0",
      "limit=501",
      "cursor=x",
      "cursor=9",
      Array.from({ length: 101 }, (_one, n) => `run_ids=${n}`).join("&"),
    ].map((query) => ["GET", `${PATH}?${query}`] as const),
  );
  testUpstreamErrors(
    () => api,
    () => get(),
    ["listTeamEvents", upstreamError("unavailable", "stopping")],
  );
});

describe("a team's events as a stream", () => {
  /** Skips validation, because the OpenAPI document describes pages, not streams. */
  const watch = (query = "", headers: Record<string, string> = {}) =>
    api.call("GET", `${PATH}${query}`, { headers: { accept: "text/event-stream", ...headers }, skipValidation: true });
  const block = (sequence: number) =>
    `id: ${sequence}\nevent: run_succeeded\ndata: ${JSON.stringify(shown(sequence))}\n\n`;

  test("begin with their position, so that no event is missed", async () => {
    api.respondWith({
      watchTeamEvents: () => [
        { events: [], afterSequence: 41n },
        { events: [anEvent(42n), anEvent(44n)], afterSequence: 44n },
        { events: [], afterSequence: 44n },
        { events: [anEvent(45n)], afterSequence: 45n },
      ],
    });
    const { status, headers, body } = await watch();
    expect([
      status,
      headers.get("content-type"),
      headers.get("cache-control"),
      headers.get("x-accel-buffering"),
    ]).toEqual([200, "text/event-stream; charset=utf-8", "no-store", "no"]);
    expect(body).toBe(
      `id: 41\nevent: open\ndata: {"sequence":41}\n\n${block(42)}${block(44)}: keep-alive\n\n${block(45)}`,
    );
  });
  test.each([
    ["", {}, undefined],
    ["?since=4", {}, 4n],
    ["?since=4", { "last-event-id": "9" }, 9n],
    ["?since=0", {}, 0n],
    ["", { "last-event-id": "nonsense" }, undefined],
  ])("%s %j are after %s", async (query, headers, afterSequence) => {
    api.respondWith({ watchTeamEvents: () => [] });
    await watch(`${query}${query ? "&" : "?"}run_ids=${RUN}`, headers);
    expect(api.calls[0]!.request).toMatchObject({ runUids: [RUN], teamUid: "" });
    expect(api.calls[0]!.request.afterSequence).toBe(afterSequence);
  });
  test("contain no events of teams that the caller has left", async () => {
    api.respondWith({
      watchTeamEvents: () => [
        { events: [], afterSequence: 1n },
        { events: [anEvent(2n)], afterSequence: 2n },
        { events: [anEvent(3n, "0190c1a2-0000-7000-8000-00000000beef")], afterSequence: 3n },
        { events: [anEvent(4n)], afterSequence: 4n },
      ],
    });
    const { body } = await watch();
    expect([body.includes("id: 2\n"), body.includes("id: 3\n"), body.includes("id: 4\n")]).toEqual([
      true,
      false,
      false,
    ]);
  });
  test("end when the source fails", async () => {
    api.respondWith({
      async *watchTeamEvents() {
        yield { events: [], afterSequence: 7n };
        throw upstreamError("unavailable", "stopping");
      },
    });
    expect((await watch()).body).toBe('id: 7\nevent: open\ndata: {"sequence":7}\n\n');
  });
});

describe.each([
  [
    "a run's events",
    `/api/v1/agent/runs/${RUN}/events`,
    "watchRunEvents",
    (seq: bigint) => ({
      events: [
        { seq, uid: `u${seq}`, kind: "message", occurredAt: at(CREATED), payload: { text: "x".repeat(60_000) } },
      ],
    }),
  ],
  [
    "a team's events",
    PATH,
    "watchTeamEvents",
    (seq: bigint) => ({ events: Array.from({ length: 200 }, () => anEvent(seq)), afterSequence: seq }),
  ],
])("a client of %s that does not read", (_what, path, method, batch) => {
  let impatient: RestApi;
  beforeAll(async () => void (impatient = await startRestApi({ stuckMs: 300 })));
  afterAll(() => impatient.close());

  test("is disconnected, and its events are not buffered without limit", async () => {
    let sentBatches = 0;
    impatient.respondWith({
      getRun: { run: aRun() },
      async *[method]() {
        for (;;) yield batch(BigInt((sentBatches += 1)));
      },
    });
    const stuck = request(`${impatient.url}${path}`, {
      headers: { accept: "text/event-stream", authorization: "Bearer member" },
    });
    stuck.on("response", (response) => response.pause()).on("error", () => {});
    stuck.end();
    await eventually(() => expect(impatient.calls.find((call) => call.method === method)?.signal.aborted).toBe(true));
    expect(sentBatches).toBeLessThan(1_000); // the capacity of the buffers of two sockets
    stuck.destroy();
  });
});
