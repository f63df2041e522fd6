import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { request as httpRequest } from "node:http";
import { z } from "zod";
import type { Caller } from "@millwright/caller";
import { systemClock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";
import { createLogger, formatTraceparent, Metrics, type LogFields } from "@millwright/telemetry";
import { aCaller, eventually, memoryLog, memoryTracer } from "@millwright/testing";
import {
  instant,
  pageLimit,
  pathUid,
  queryBoolean,
  queryList,
  queryMap,
  restApp,
  route,
  uuid,
  type RestOptions,
  type Route,
} from "../src/rest/index.ts";
import { aboutErrorsRoute } from "../src/routes/platform/about-errors.ts";
import { serveApi, type Api } from "./support/api.ts";

const Echo = z.object({ saw: z.unknown() }).meta({ id: "Echo" });
const failing = (error: unknown) => async () => {
  throw error;
};

const routes: Route[] = [
  route({
    method: "GET",
    path: "/things/{thingUid}",
    summary: "Get",
    params: z.object({ thingUid: pathUid("thing") }),
    response: Echo,
    handler: async ({ params }) => ({ saw: params.thingUid }),
  }),
  route({
    method: "GET",
    path: "/things/special",
    summary: "Literal",
    response: Echo,
    handler: async () => ({ saw: "literal" }),
  }),
  route({
    method: "GET",
    path: "/things",
    summary: "List",
    response: Echo,
    query: z.object({
      state: queryList(z.enum(["A", "B"])).optional(),
      since: instant().optional(),
      flag: queryBoolean().optional(),
      limit: pageLimit(20),
      metadata: queryMap(z.string()).optional(),
      q: z.string().optional(),
    }),
    handler: async ({ query }) => ({ saw: { ...query, since: query.since?.toISOString() } }),
  }),
  route({
    method: "POST",
    path: "/things",
    summary: "Create",
    body: z.object({ name: z.string().min(1), at: instant().optional() }),
    response: Echo,
    status: 201,
    idempotent: true,
    handler: async ({ body, request }) => ({ saw: [body.name, request.idempotency] }),
  }),
  route({
    method: "POST",
    path: "/optional",
    summary: "No body needed",
    body: z.object({ a: z.string().optional() }).optional(),
    response: Echo,
    handler: async ({ body }) => ({ saw: body ?? null }),
  }),
  route({
    method: "GET",
    path: "/artifacts/{uid}",
    summary: "400",
    params: z.object({ uid: uuid() }),
    response: Echo,
    handler: async () => ({ saw: 1 }),
  }),
  route({
    method: "DELETE",
    path: "/things/{thingUid}",
    summary: "Delete",
    params: z.object({ thingUid: pathUid("thing") }),
    status: 204,
    handler: async () => undefined,
  }),
  route({
    method: "GET",
    path: "/public",
    summary: "Public",
    auth: "none",
    response: Echo,
    handler: async ({ caller }) => ({ saw: caller === undefined }),
  }),
  route({
    method: "GET",
    path: "/maybe",
    summary: "Maybe",
    auth: "optional",
    response: Echo,
    handler: async ({ caller }) => ({ saw: caller?.principal.uid ?? null }),
  }),
  route({
    method: "GET",
    path: "/busy",
    summary: "Busy",
    response: Echo,
    errors: [409],
    handler: failing(new DomainError({ kind: "conflict", reason: "run_pending", message: "Wait.", retryable: true })),
  }),
  route({
    method: "GET",
    path: "/taken",
    summary: "Taken",
    response: Echo,
    errors: [409],
    handler: failing(new DomainError({ kind: "conflict", reason: "name_taken", message: "Taken." })),
  }),
  route({
    method: "GET",
    path: "/limited",
    summary: "Limited",
    response: Echo,
    errors: [429],
    handler: failing(
      new DomainError({ kind: "rate_limited", reason: "slow_down", message: "Slow.", retryAfterSeconds: 7 }),
    ),
  }),
  route({
    method: "GET",
    path: "/broken",
    summary: "Broken",
    response: Echo,
    handler: failing(new Error("private text")),
  }),
  route({
    method: "POST",
    path: "/broken",
    summary: "Broken create",
    status: 201,
    response: Echo,
    idempotent: true,
    handler: failing(new Error("private text")),
  }),
  route({
    method: "POST",
    path: "/broken-start",
    summary: "Broken create that answers 200",
    response: Echo,
    idempotent: true,
    handler: failing(new Error("private text")),
  }),
  route({
    method: "GET",
    path: "/named",
    summary: "Repeats a name",
    query: z.object({ name: z.string() }),
    response: Echo,
    handler: ({ query }) =>
      failing(
        new DomainError({ kind: "invalid_argument", reason: "name_unknown", message: `There is no ${query.name}.` }),
      )(),
  }),
  route({
    method: "GET",
    path: "/slow",
    summary: "Slow",
    timeoutMs: 30,
    response: Echo,
    handler: () => new Promise(() => {}),
  }),
];

const caller: Caller = aCaller();
const log = memoryLog();
const tracer = memoryTracer();
/** Log lines as written, including scopes. */
const logged: string[] = [];
const lineLog = createLogger({ service: "gateway", destination: { write: (line: string) => void logged.push(line) } });
const bothLogs = {
  ...log,
  ...Object.fromEntries(
    (["info", "error"] as const).map((level) => [
      level,
      (fields: LogFields, message: string) => (log[level](fields, message), lineLog[level](fields, message)),
    ]),
  ),
};
let api: Api;

beforeAll(async () => {
  api = await serveApi(
    restApp({
      publicUrl: "https://mill.example",
      routes: [...routes, aboutErrorsRoute],
      mounts: [
        { prefix: "/mounted/", listener: (_request, response) => void response.writeHead(503).end() },
        { prefix: "/recorded/", listener: (_request, response) => void response.end(), isRecorded: true },
      ],
      teamHeaders: ["x-service-team-uid"],
      clock: systemClock,
      log: bothLogs,
      metrics: new Metrics(),
      tracer,
      respondOnce: (_caller, _key, act) => act(),
      async authenticate({ bearer }) {
        if (bearer === "good") return caller;
        throw new DomainError({ kind: "unauthenticated", reason: "key_invalid", message: "Unknown key." });
      },
    }),
    "good",
  );
});
afterAll(() => api.close());

const UID = "0198c2d0-0000-7000-8000-000000000001";
const get = (path: string) => api.call("GET", `/api/v1${path}`);
const post = (path: string, body: unknown, headers = {}) => api.call("POST", `/api/v1${path}`, { body, headers });

describe("routing", () => {
  test("a literal path wins over a parameter, whatever the order of declaration", async () => {
    expect((await get("/things/special")).body).toEqual({ saw: "literal" });
  });
  test("a malformed id is like an absent resource, except where the specification requires 400", async () => {
    expect(await get("/things/nonsense")).toMatchObject({
      status: 404,
      body: { reason: "thing_not_found", error_code: "resource_not_found" },
    });
    expect(await get("/things/%00")).toMatchObject({ status: 404 });
    expect(await get("/things/%E0%A4%A")).toMatchObject({ status: 404 });
    expect(await get("/artifacts/nonsense")).toMatchObject({ status: 400, body: { error_code: "invalid_request" } });
    expect((await get(`/things/${UID.toUpperCase()}`)).body).toEqual({ saw: UID });
  });
  test("an unknown path is 404, another method 405 with Allow", async () => {
    expect(await get("/nowhere")).toMatchObject({ status: 404, body: { reason: "path_not_found" } });
    const answer = await api.call("PATCH", "/api/v1/things");
    expect(answer).toMatchObject({
      status: 405,
      body: { status: 405, error_code: "invalid_request", reason: "method_not_allowed" },
    });
    expect(answer.headers.get("allow")).toBe("GET, HEAD, POST");
  });
  test("204 has no body", async () =>
    expect(await api.call("DELETE", `/api/v1/things/${UID}`)).toMatchObject({ status: 204, body: "" }));
});

describe("anonymous requests", () => {
  test.each(["/things", "/nowhere", `/things/${UID}`, "/things/nonsense", "/slow"])(
    "get 401 for %s, existing or not",
    async (path) => {
      for (const key of [null, "bad"])
        expect(await api.call("GET", `/api/v1${path}`, { key })).toMatchObject({
          status: 401,
          body: { error_code: "authentication_required", retryable: false },
        });
    },
  );
  test("get 401 for a wrong method too", async () =>
    expect(await api.call("PATCH", "/api/v1/things", { key: null })).toMatchObject({ status: 401 }));
  test("may use public routes, and optional ones without a credential or with a valid one", async () => {
    expect((await api.call("GET", "/api/v1/public", { key: "bad" })).body).toEqual({ saw: true });
    expect((await api.call("GET", "/api/v1/maybe", { key: null })).body).toEqual({ saw: null });
    expect((await get("/maybe")).body).toEqual({ saw: caller.principal.uid });
    expect(await api.call("GET", "/api/v1/maybe", { key: "bad" })).toMatchObject({ status: 401 });
  });
});

describe("query parameters", () => {
  test.each([
    ["", { limit: 20 }],
    ["?unknown=1&limit=5", { limit: 5 }],
    ["?state=A", { limit: 20, state: ["A"] }],
    ["?state=A&state=B", { limit: 20, state: ["A", "B"] }],
    ["?flag=true", { limit: 20, flag: true }],
    ["?metadata%5Bticket%5D=X-1&metadata[b]=2", { limit: 20, metadata: { ticket: "X-1", b: "2" } }],
    ["?since=2026-11-20", { limit: 20, since: "2026-11-20T00:00:00.000Z" }],
    ["?since=2026-11-20T10:00:00%2B02:00", { limit: 20, since: "2026-11-20T08:00:00.000Z" }],
    ["?since=2026-11-20T10:00:00+02:00", { limit: 20, since: "2026-11-20T08:00:00.000Z" }],
    ["?since=2026-11-20T10:00:00.123456Z", { limit: 20, since: "2026-11-20T10:00:00.123Z" }],
  ])("%s is understood", async (query, saw) => expect((await get(`/things${query}`)).body).toEqual({ saw }));

  test.each([
    "limit=0",
    "limit=101",
    "limit=x",
    "limit=",
    "limit=1&limit=2",
    "limit=1e1",
    "flag=1",
    "flag=TRUE",
    "flag=",
    "state=C",
    "state=A,B",
    "since=yesterday",
    "since=2026-02-30",
    "since=0000-01-01",
    "since=0001-01-01T00:00:00%2B01:00",
    "since=2026-11-20T25:00:00Z",
    "since=2026-11-20T10:00:00",
    "q=%00",
    "q=a&q=b",
    "metadata=x",
    "metadata[a]=1&metadata[a]=2",
  ])("%s is a 400", async (query) => {
    expect(await get(`/things?${query}`)).toMatchObject({
      status: 400,
      body: { error_code: "invalid_request", reason: expect.stringMatching(/^invalid_/) },
    });
  });
});

describe("bodies", () => {
  test("unknown members are ignored", async () =>
    expect((await post("/things", { name: "x", other: 1 })).body).toEqual({ saw: ["x", null] }));
  test("may be omitted if they are optional", async () =>
    expect((await api.call("POST", "/api/v1/optional")).body).toEqual({ saw: null }));
  test.each<[string, string, string]>([
    ["", "application/json", "invalid_body"],
    ["{", "application/json", "malformed_json"],
    ["null", "application/json", "invalid_body"],
    ["[]", "application/json", "invalid_body"],
    ['{"name":1}', "application/json", "invalid_body"],
    ['{"name":"a\\u0000"}', "application/json", "invalid_text"],
    ['{"name":"\\ud800"}', "application/json", "invalid_text"],
    ['{"name":"x"}', "text/plain", "content_type_not_json"],
    ['{"name":"x"}', "application/json; charset=latin1", "content_type_not_json"],
    ["[".repeat(200) + "]".repeat(200), "application/json", "invalid_body"],
  ])("%j as %s is rejected: %s", async (rawBody, type, reason) => {
    const answer = await api.call("POST", "/api/v1/things", { rawBody, headers: { "content-type": type } });
    expect(answer).toMatchObject({ status: 400, body: { error_code: "invalid_request", reason, retryable: false } });
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
  });
  test("beyond 1 MiB are a 413, announced or not", async () => {
    const answer = await post("/things", { name: "x".repeat(1024 * 1024) });
    expect(answer).toMatchObject({ status: 413, body: { error_code: "payload_too_large", reason: "body_too_large" } });
    expect(await chunked(`${api.url}/api/v1/things`, "x".repeat(1024 * 1024 + 1))).toBe(413);
  });
  test("an idempotency key is bound to method, path and body, not to the order of members", async () => {
    const one = await post("/things", { name: "x", at: "2026-01-01" }, { "idempotency-key": "k" });
    const two = await post("/things", { at: "2026-01-01", name: "x" }, { "idempotency-key": "k" });
    expect(one.body.saw[1]).toMatchObject({ key: "k", operation: "POST /api/v1/things" });
    expect(two.body).toEqual(one.body);
    expect(await post("/things", { name: "x" }, { "idempotency-key": "k k" })).toMatchObject({
      status: 400,
      body: { reason: "invalid_idempotency_key" },
    });
  });
});

describe("problems", () => {
  test("have exactly the published members", async () => {
    expect((await get("/busy")).body).toEqual({
      type: "https://mill.example/errors/conflict",
      title: "Conflict",
      status: 409,
      error: "Conflict (Wait.)",
      detail: "Wait.",
      instance: "/api/v1/busy",
      retryable: true,
      trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
      error_code: "conflict",
      reason: "run_pending",
    });
  });
  test.each([
    ["/busy", "true", "1"],
    ["/taken", "false", null],
    ["/limited", "true", "7"],
    ["/broken", "true", null],
    ["/slow", "true", "1"],
    ["/nowhere", null, null],
  ])("%s returns x-should-retry %s and Retry-After %s", async (path, should, after) => {
    const { headers } = await get(path);
    expect([headers.get("x-should-retry"), headers.get("retry-after")]).toEqual([should, after]);
  });
  test.each(["/broken", "/broken-start"])(
    "a create that failed, %s, must not be repeated unless it has an idempotency key, whatever its status of success",
    async (path) => {
      const headers = { "content-type": "application/json" };
      expect((await api.call("POST", `/api/v1${path}`, { headers })).body).toMatchObject({
        status: 500,
        retryable: false,
      });
      expect(
        (await api.call("POST", `/api/v1${path}`, { headers: { ...headers, "idempotency-key": "k" } })).body,
      ).toMatchObject({ status: 500, retryable: true });
    },
  );
  test("an unexpected error stays private and is logged once", async () => {
    log.entries.length = 0;
    const { body } = await get("/broken");
    expect(JSON.stringify(body)).not.toContain("private");
    expect(log.entries.filter(({ level }) => level === "error")).toHaveLength(1);
  });
});

test.each(["mw_", "mww_", "mwr_", "mws_"])(
  "does not repeat a key that was sent in the wrong place: %s",
  async (prefix) => {
    const key = `${prefix}${"aB3-_".repeat(8)}`;
    for (const path of [`/api/v1/${key}`, `/api/v1/things/${key}`, `/api/v1/named?name=${key}`]) {
      const { headers, body } = await api.call("GET", path, { headers: { "x-request-id": key } });
      expect(JSON.stringify([...headers, body])).not.toContain(key);
      expect([body.status >= 400, headers.get("x-request-id")]).toEqual([
        true,
        expect.stringMatching(/^[0-9a-f-]{36}$/),
      ]);
    }
    expect(JSON.stringify([log.entries, logged])).not.toContain(key);
    expect((await api.call("GET", "/api/v1/named?name=mw_short")).body.detail).toBe("There is no mw_short.");
  },
);

test("every response has a request id, taken from the client when well-formed, and security headers; no CORS", async () => {
  const answer = await api.call("GET", "/api/v1/things", {
    headers: { "x-request-id": "mine-1", origin: "https://elsewhere.example" },
  });
  expect(answer.headers.get("x-request-id")).toBe("mine-1");
  expect(
    (await api.call("GET", "/api/v1/things", { headers: { "x-request-id": "not mine!" } })).headers.get("x-request-id"),
  ).toMatch(/^[0-9a-f-]{36}$/);
  expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
  expect(answer.headers.get("access-control-allow-origin")).toBeNull();
});

describe("a request's trace", () => {
  const PARENT = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331", isSampled: true };

  test("continues the client's traceparent; the span has the route's name and no path, query or body", async () => {
    tracer.spans.length = 0;
    await api.call("GET", `/api/v1/things/${UID}?q=hunter2`, {
      headers: { traceparent: formatTraceparent(PARENT), "x-request-id": "mine-2" },
    });
    await eventually(() => tracer.spans[0]?.isEnded ?? false);
    expect(tracer.spans).toMatchObject([
      {
        name: "GET /api/v1/things/{thingUid}",
        kind: "server",
        parent: PARENT,
        attributes: {
          "http.route": "/api/v1/things/{thingUid}",
          "http.response.status_code": 200,
          "millwright.request.id": "mine-2",
        },
      },
    ]);
    expect(JSON.stringify(tracer.spans)).not.toMatch(new RegExp(`hunter2|${UID}`));
  });

  test("is in the problem and in the log lines of the request", async () => {
    tracer.spans.length = 0;
    logged.length = 0;
    const { body } = await api.call("GET", "/api/v1/broken", { headers: { "x-request-id": "mine-3" } });
    await eventually(() => logged.length === 2);
    const [span] = tracer.spans;
    expect(body.trace_id).toBe(span!.context.traceId);
    const lines = logged.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toMatchObject([{ message: "request failed" }, { message: "request finished" }]);
    for (const line of lines)
      expect(line).toMatchObject({ requestId: "mine-3", traceId: body.trace_id, spanId: span!.context.spanId });
    expect(span).toMatchObject({ error: "internal", attributes: { "http.response.status_code": 500 } });
  });

  test("covers mounted listeners by their prefix, unless they record themselves", async () => {
    tracer.spans.length = 0;
    const { headers } = await api.call("PUT", `/mounted/${UID}?sig=hunter2`, {
      key: null,
      headers: { traceparent: formatTraceparent(PARENT), "x-request-id": "mine-4" },
    });
    await api.call("GET", "/recorded/x", { key: null });
    await eventually(() => tracer.spans[0]?.isEnded ?? false);
    expect(headers.get("x-request-id")).toBe("mine-4");
    expect(tracer.spans).toMatchObject([
      {
        name: "ANY /mounted/",
        parent: PARENT,
        error: "503",
        attributes: { "http.request.method": "PUT", "http.route": "/mounted/", "http.response.status_code": 503 },
      },
    ]);
    expect(JSON.stringify(tracer.spans)).not.toMatch(new RegExp(`hunter2|${UID}`));
  });

  test("a rejected request is not an error of the server", async () => {
    tracer.spans.length = 0;
    await get("/taken");
    await get("/nowhere");
    await eventually(() => tracer.spans.every(({ isEnded }) => isEnded));
    expect(tracer.spans).toMatchObject([{ attributes: { "error.type": "name_taken" } }, { name: "no route" }]);
    for (const span of tracer.spans) expect(span).not.toHaveProperty("error");
  });
});

test("the type of a problem leads to a page", async () => {
  expect(await api.call("GET", "/errors/conflict", { key: null })).toMatchObject({
    status: 200,
    body: expect.stringContaining("Conflict"),
  });
  expect(await api.call("GET", "/errors/other", { key: null })).toMatchObject({ status: 404 });
});

test("the OpenAPI document describes every route, and is public", async () => {
  const { body } = await api.call("GET", "/api/v1/openapi.json", { key: null });
  expect(body).toMatchObject({ openapi: "3.1.0", info: { version: "1.0.0" } });
  expect(Object.keys(body.paths)).toEqual(expect.arrayContaining(routes.map((each) => `/api/v1${each.path}`)));
  const list = body.paths["/api/v1/things"].get.parameters;
  expect(list.find((each: { name: string }) => each.name === "limit")).toMatchObject({
    in: "query",
    schema: { type: "integer", minimum: 1, maximum: 100, default: 20 },
  });
});

test("rejects two declarations of one operation at the start", () => {
  const options = {
    publicUrl: "",
    teamHeaders: [],
    clock: systemClock,
    log: bothLogs,
    metrics: new Metrics(),
    tracer,
    authenticate: async () => caller,
    respondOnce: (_caller, _key, act) => act(),
  } satisfies Omit<RestOptions, "routes">;
  expect(() => restApp({ ...options, routes: [...routes, routes[1] as Route] })).toThrow(/declared twice/);
});

function chunked(url: string, body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const req = httpRequest(
      url,
      { method: "POST", headers: { authorization: "Bearer good", "content-type": "application/json" } },
      (res) => {
        res.resume();
        resolve(res.statusCode ?? 0);
      },
    );
    req.on("error", reject);
    req.write(body);
    req.end();
  });
}
