import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { VERBS } from "@millwright/caller";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { AGENT, OTHER_TEAM, RUN, TEAM, USER } from "./support/people.ts";
import { aFactory, aRun, CREATED, FACTORY, UPDATED } from "./support/records.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const PATH = "/api/v1/factory";
const shown = {
  uid: FACTORY,
  name: "Roofs",
  alias: null,
  description: null,
  team_uid: TEAM,
  avatar_url: null,
  code_forge: "NONE",
  code_forges: ["NONE"],
  repositories: [],
  credential_strategy: "EXECUTOR",
  default_environment: null,
  default_model: null,
  agent_defaults: { default_runner_uid: "", mcp_servers: {}, secrets: [], worker_host: "" },
  scorer_defaults: {},
  scoring: { default_model: null },
  integrations: null,
  creator: { uid: USER, email: "ada@example.com" },
  created_at: CREATED,
  updated_at: UPDATED,
  foreman_agent_uid: null,
  management: "live",
  permissions: [...VERBS],
  definition_version: 0,
  concurrency_limit: 0,
  queue_paused: false,
};

describe("a factory", () => {
  test("returns every published field, with the caller's permissions", async () => {
    api.respondWith({ getFactory: { factory: aFactory() } });
    expect((await api.call("GET", `${PATH}/${FACTORY}`)).body).toEqual(shown);
    expect((await api.call("GET", `${PATH}/${FACTORY}`, { key: "of_no_team" })).body.permissions).toEqual([]);
  });
  test("returns optional members that are set", async () => {
    const fields = {
      alias: "roof",
      description: "d",
      codeForge: "GITHUB",
      codeForges: ["GITHUB"],
      repositories: [
        { owner: "o", repo: "r", codeForge: "GITHUB" },
        { owner: "o", repo: "s" },
      ],
      defaultEnvironment: "e",
      defaultModel: "auto",
      scorerDefaults: { secrets: [] },
      scoringDefaultModel: "m",
      integrations: { items: [] },
      selfImprovement: { reviewer_type: "team", failed_run_threshold: 3 },
      foremanAgentUid: AGENT,
      management: "service_files",
      definitionVersion: 3n,
      creatorUid: "gone",
      concurrencyLimit: 4,
      queuePaused: true,
    };
    api.respondWith({ getFactory: { factory: aFactory(fields) } });
    expect((await api.call("GET", `${PATH}/${FACTORY}`)).body).toMatchObject({
      alias: "roof",
      description: "d",
      code_forge: "GITHUB",
      repositories: [
        { owner: "o", repo: "r", code_forge: "GITHUB" },
        { owner: "o", repo: "s" },
      ],
      default_environment: "e",
      default_model: "auto",
      scorer_defaults: { secrets: [] },
      scoring: { default_model: "m" },
      integrations: [],
      self_improvement: { reviewer_type: "team", failed_run_threshold: 3 },
      foreman_agent_uid: AGENT,
      management: "service_files",
      definition_version: 3,
      creator: { uid: "gone", email: null },
      concurrency_limit: 4,
      queue_paused: true,
    });
  });
  testUpstreamErrors(
    () => api,
    () => api.call("GET", `${PATH}/${FACTORY}`),
    [
      "getFactory",
      upstreamError("not_found", "factory_not_found"),
      upstreamError("permission_denied", "not_authorized"),
    ],
  );
});

describe("the list of factories", () => {
  test.each<[string, string, string, object]>([
    ["member", "", "", { teamUid: "", search: "", pageSize: 50, pageToken: "" }],
    ["member", "?search=a%25&limit=100&cursor=c", "", { search: "a%", pageSize: 100, pageToken: "c" }],
    ["member", "", TEAM, { teamUid: TEAM }],
    ["member", `?team_uid=${OTHER_TEAM}`, TEAM, { teamUid: OTHER_TEAM }],
    ["member", `?filter_team_uid=${OTHER_TEAM}`, "", { teamUid: OTHER_TEAM }],
    ["member", `?team_uid=${OTHER_TEAM.toUpperCase()}`, "", { teamUid: OTHER_TEAM }],
    ["agent", `?team_uid=${OTHER_TEAM}`, "", { teamUid: OTHER_TEAM }],
  ])("as %s with %s and header %s", async (key, query, header, asked) => {
    api.respondWith({ listFactories: { factories: [aFactory()], nextPageToken: "n" } });
    const { body } = await api.call("GET", `${PATH}${query}`, {
      key,
      headers: header ? { "x-service-team-uid": header } : {},
    });
    expect(body).toEqual({ factories: [shown], page_info: { has_next_page: true, next_cursor: "n" } });
    expect(api.calls[0]!.request).toMatchObject(asked);
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    ["limit=0", "limit=101", "limit=-1", "limit=x", "cursor="].map((query) => ["GET", `${PATH}?${query}`] as const),
  );
  testUpstreamErrors(
    () => api,
    () => api.call("GET", PATH),
    ["listFactories", upstreamError("invalid_argument", "invalid_cursor")],
  );
});

describe("creating, changing and deleting", () => {
  const create = (body: object, more = {}) => api.call("POST", PATH, { body, ...more });
  test("create passes on fields, team and Idempotency-Key", async () => {
    api.respondWith({ createFactory: { factory: aFactory() } });
    const body = {
      name: " Roofs ",
      alias: "roof",
      description: "d",
      repositories: [
        { owner: "o", repo: "r", code_forge: "GITHUB" },
        { owner: "o", repo: "s" },
      ],
    };
    expect(await create(body, { headers: { "idempotency-key": "k" } })).toMatchObject({ status: 201, body: shown });
    expect(api.calls[0]!.request).toMatchObject({
      teamUid: TEAM,
      idempotencyKey: "k",
      factory: {
        name: "Roofs",
        alias: "roof",
        description: "d",
        repositories: [
          { owner: "o", repo: "r", codeForge: "GITHUB" },
          { owner: "o", repo: "s", codeForge: "" },
        ],
      },
    });
    await create({ name: "n", team_uid: OTHER_TEAM }, { key: "of_two_teams" });
    expect(api.calls[1]!.request.teamUid).toBe(OTHER_TEAM);
    await create({ name: "n", team_uid: OTHER_TEAM.toUpperCase() }, { key: "of_two_teams" });
    expect(api.calls[2]!.request.teamUid).toBe(OTHER_TEAM);
  });
  test.each([
    [{ name: "n" }, "of_two_teams", 400, "team_required"],
    [{ name: "n", team_uid: OTHER_TEAM }, "member", 404, "team_not_found"],
    [{ name: "n", team_uid: "x" }, "member", 404, "team_not_found"],
  ])("create %j as %s is a %i", async (body, key, status, reason) => {
    api.respondWith({});
    expect(await create(body, { key })).toMatchObject({ status, body: { reason } });
    expect(api.calls).toEqual([]);
  });
  test.each<[object, string[], object]>([
    [{}, [], {}],
    [{ name: "New" }, ["name"], { name: "New" }],
    [{ alias: null, description: null }, ["alias", "description"], { alias: undefined, description: undefined }],
    [{ description: "" }, ["description"], { description: "" }],
    [{ alias: "Büro 2" }, ["alias"], { alias: "Büro 2" }],
    [{ repositories: [] }, ["repositories"], { repositories: [] }],
    [{ name: "New", unknown: 1, uid: "x" }, ["name"], {}],
  ])("PATCH %j changes exactly what is sent", async (body, paths, fields) => {
    api.respondWith({ updateFactory: { factory: aFactory() } });
    expect(await api.call("PATCH", `${PATH}/${FACTORY}`, { body })).toMatchObject({ status: 200, body: shown });
    const { request } = api.calls[0]!;
    expect([request.uid, new Set(request.updateMask.paths)]).toEqual([FACTORY, new Set(paths)]);
    for (const [name, value] of Object.entries(fields)) expect([name, request.factory[name]]).toEqual([name, value]);
  });
  test("DELETE has no body", async () => {
    api.respondWith({ deleteFactory: {} });
    expect(await api.call("DELETE", `${PATH}/${FACTORY}`)).toMatchObject({ status: 204, body: "" });
    expect(api.calls[0]!.request).toMatchObject({ uid: FACTORY, cancelRuns: false });
    await api.call("DELETE", `${PATH}/${FACTORY}?cancel_runs=true`);
    expect(api.calls[1]!.request).toMatchObject({ uid: FACTORY, cancelRuns: true });
    expect(await api.call("DELETE", `${PATH}/${FACTORY}?cancel_runs=yes`)).toMatchObject({ status: 400 });
  });
  testUpstreamErrors(
    () => api,
    () => create({ name: "n" }),
    [
      "createFactory",
      upstreamError("conflict", "alias_taken"),
      upstreamError("permission_denied", "not_authorized"),
      upstreamError("conflict", "idempotency_mismatch"),
    ],
  );
  testUpstreamErrors(
    () => api,
    () => api.call("PATCH", `${PATH}/${FACTORY}`, { body: {} }),
    [
      "updateFactory",
      upstreamError("not_found", "factory_not_found"),
      upstreamError("conflict", "alias_taken"),
      upstreamError("permission_denied", "not_authorized"),
    ],
  );
  testUpstreamErrors(
    () => api,
    () => api.call("DELETE", `${PATH}/${FACTORY}`),
    [
      "deleteFactory",
      upstreamError("not_found", "factory_not_found"),
      upstreamError("conflict", "factory_has_live_runs"),
      upstreamError("permission_denied", "not_authorized"),
    ],
  );
  const wrong = [
    { name: "" },
    { name: " " },
    { name: 1 },
    { name: null },
    { name: "n".repeat(101) },
    { name: "n", alias: "" },
    { name: "n", alias: "a/b" },
    { name: "n", alias: "a".repeat(61) },
    { name: "n", description: 1 },
    { name: "n", repositories: [{ owner: "o" }] },
    { name: "n", repositories: [{ owner: "o", repo: "r", code_forge: "NONE" }] },
    [],
    "x",
  ];
  testRejectedBeforeUpstreams(() => api, 400, [
    ...wrong.flatMap(
      (body) =>
        [
          ["POST", PATH, body],
          ["PATCH", `${PATH}/${FACTORY}`, body],
        ] as const,
    ),
    ["POST", PATH, {}],
  ]);
});

describe("dispatch", () => {
  const RUNS = `${PATH}/${FACTORY}/runs`;
  const sent = { runUid: RUN, foremanAgent: "foreman", ticketRef: "adhoc:1" };
  const dispatch = (body: object = { prompt: "Mend it" }, headers: Record<string, string> = {}) =>
    api.call("POST", RUNS, { body, headers });
  test("returns the run with foreman, ticket and link", async () => {
    api.respondWith({
      dispatchRun: sent,
      getRun: { run: aRun({ metadata: { ticket_source: "adhoc", ticket_id: "1" } }) },
    });
    const { status, body } = await dispatch();
    expect([status, body]).toMatchObject([
      201,
      {
        run_id: RUN,
        state: "QUEUED",
        title: "Mend it",
        factory_uid: FACTORY,
        foreman_agent: "foreman",
        ticket_ref: "adhoc:1",
        run_url: `https://mill.example/runs/${RUN}`,
        metadata: { ticket_id: "1" },
      },
    ]);
    expect(api.calls[0]!.request).toMatchObject({ factoryUid: FACTORY, prompt: "Mend it", idempotencyKey: "" });
  });
  test("passes on all members, with the prompt unchanged", async () => {
    api.respondWith({ dispatchRun: sent, getRun: { run: aRun() } });
    await dispatch(
      { prompt: "  keep\n", title: "t", ticket_ref: "linear:A:1", ticket_url: "https://t.example/1" },
      { "idempotency-key": "k" },
    );
    expect(api.calls[0]!.request).toMatchObject({
      prompt: "  keep\n",
      title: "t",
      ticketRef: "linear:A:1",
      ticketUrl: "https://t.example/1",
      idempotencyKey: "k",
    });
  });
  test.each([
    upstreamError("permission_denied", "not_authorized"),
    upstreamError("unavailable", "service_unavailable"),
  ])("returns success once accepted, even if the read afterwards fails", async (error) => {
    api.respondWith({ dispatchRun: sent, getRun: error });
    expect(await dispatch()).toMatchObject({
      status: 201,
      body: { run_id: RUN, state: "QUEUED", ticket_ref: "adhoc:1" },
    });
  });
  testUpstreamErrors(() => api, dispatch, [
    "dispatchRun",
    upstreamError("not_found", "factory_not_found"),
    upstreamError("invalid_argument", "invalid_ticket_ref"),
    upstreamError("conflict", "foreman_missing"),
    upstreamError("permission_denied", "not_authorized"),
    upstreamError("conflict", "idempotency_mismatch"),
  ]);
  test("has x-should-retry: false without a foreman", async () => {
    api.respondWith({ dispatchRun: upstreamError("conflict", "foreman_missing") });
    expect((await dispatch()).headers.get("x-should-retry")).toBe("false");
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [
      {},
      { prompt: "" },
      { prompt: " \n" },
      { prompt: 1 },
      { prompt: "p", title: 1 },
      { prompt: "p", ticket_ref: 1 },
      { prompt: "p", ticket_url: "nonsense" },
      { prompt: "p", ticket_url: "javascript:alert(1)" },
    ].map((body) => ["POST", RUNS, body] as const),
  );
});

testRejectedBeforeUpstreams(() => api, 404, [
  ["GET", `${PATH}/x`],
  ["PATCH", `${PATH}/x`, {}],
  ["DELETE", `${PATH}/x`],
  ["POST", `${PATH}/x/runs`, { prompt: "p" }],
]);
