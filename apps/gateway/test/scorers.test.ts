import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { NIL_UUID } from "@millwright/ids";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { AGENT, RUN, TEAM } from "./support/people.ts";
import { at, CREATED, FACTORY, UPDATED } from "./support/records.ts";
import { aScorer, RECORD, SCORER, SCORERS } from "./support/scoring.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const uids = (count: number) =>
  Array.from({ length: count }, (_each, n) => `0198c2d0-0000-7000-8000-${String(n + 1).padStart(12, "0")}`);
const asked = (method: string) => api.calls.find((call) => call.method === method)!.request;
/** Returns the expected members of a message, with undefined for those that are not set. */
const membersOf = (message: Record<string, unknown>, expected: object) =>
  Object.fromEntries(Object.keys(expected).map((name) => [name, message[name]]));
const BODY = {
  name: "Tone",
  scoring_prompt: "Is it kind?",
  model_id: "scripted",
  scope_mode: "all_agents",
  threshold: 0.5,
  allowed_classifications: [
    { value: "good", score: 1, description: "Kind." },
    { value: "bad", score: 0 },
  ],
};
const RULE = { checks: [{ kind: "command", command: "npm test", exit_code: 0 }], pass: "good", fail: "bad" };

describe("POST /factory/{uid}/scorers", () => {
  const create = (body: unknown, headers = {}) => api.call("POST", SCORERS, { body, headers });
  test("returns 201 and the record, whose members are those of the specification", async () => {
    api.respondWith({ createScorer: { scorer: aScorer() } });
    const { status, body } = await create(BODY);
    expect([status, body]).toEqual([201, RECORD]);
    expect(asked("createScorer").scorer).toMatchObject({
      factoryUid: FACTORY,
      name: "Tone",
      scoringPrompt: "Is it kind?",
      modelId: "scripted",
      scopeMode: "all_agents",
      threshold: 0.5,
      agents: [],
      allowedClassifications: [
        { value: "good", score: 1, description: "Kind." },
        { value: "bad", score: 0 },
      ],
    });
  });
  test.each<[string, object, object]>([
    [
      "agents with descendants",
      { scope_mode: "selected_agents", agents: [{ uid: AGENT, include_descendants: true }] },
      { agents: [{ agentUid: AGENT, includeDescendants: true }] },
    ],
    [
      "agent_uids as agents without descendants",
      { scope_mode: "selected_agents", agent_uids: [AGENT] },
      { agents: [{ agentUid: AGENT, includeDescendants: false }] },
    ],
    ["a sampling rate of 0, which is not the default", { sampling_rate: 0 }, { samplingRate: 0 }],
    ["a sampling rate of null, which is the default", { sampling_rate: null }, { samplingRate: undefined }],
    ["a threshold of 0", { threshold: 0 }, { threshold: 0 }],
    ["self-improvement", { self_improvement_enabled: true }, { selfImprovementEnabled: true }],
    [
      "overrides for judges, null inherits and empty clears",
      { agent_config: { default_runner_uid: null, secrets: [] } },
      { agentConfig: { default_runner_uid: null, secrets: [] } },
    ],
    [
      "a rule without model and rubric",
      { rule: RULE, model_id: undefined, scoring_prompt: undefined },
      { rule: RULE, modelId: "rule", scoringPrompt: "" },
    ],
    ["unknown members, which are ignored", { unknown: 1 }, { name: "Tone" }],
  ])("accepts %s", async (_what, more, expected) => {
    api.respondWith({ createScorer: { scorer: aScorer() } });
    expect((await create({ ...BODY, ...more })).status).toBe(201);
    expect(membersOf(asked("createScorer").scorer, expected)).toMatchObject(expected);
  });
  test("passes on the Idempotency-Key", async () => {
    api.respondWith({ createScorer: { scorer: aScorer() } });
    await create(BODY, { "idempotency-key": "once" });
    expect(asked("createScorer").idempotencyKey).toBe("once");
  });
  testUpstreamErrors(
    () => api,
    () => create(BODY),
    [
      "createScorer",
      upstreamError("not_found", "factory_not_found"),
      upstreamError("not_found", "agent_not_found"),
      upstreamError("permission_denied", "not_authorized"),
      upstreamError("permission_denied", "human_required"),
      upstreamError("invalid_argument", "scorer_invalid"),
      upstreamError("invalid_argument", "model_unknown"),
      upstreamError("conflict", "scorer_name_taken"),
      upstreamError("conflict", "idempotency_mismatch"),
    ],
  );
});

const WRONG: object[] = [
  { name: " " },
  { name: "x".repeat(201) },
  { name: null },
  { scoring_prompt: " " },
  { scoring_prompt: null },
  { model_id: "" },
  { scope_mode: "some" },
  { threshold: 1.1 },
  { threshold: -0.1 },
  { threshold: null },
  { allowed_classifications: [] },
  {
    allowed_classifications: [
      { value: "", score: 1 },
      { value: "b", score: 0 },
    ],
  },
  {
    allowed_classifications: [
      { value: "a", score: 2 },
      { value: "b", score: 0 },
    ],
  },
  { sampling_rate: 100.01 },
  { sampling_rate: -1 },
  { sampling_rate: "50" },
  { agents: [{ include_descendants: true }] },
  { agents: [{ uid: AGENT }], agent_uids: [AGENT] },
  { agent_config: { mcp_servers: { a: {} } } },
  { rule: { checks: [], pass: "good", fail: "bad" } },
  { rule: { checks: [{ kind: "guess" }], pass: "good", fail: "bad" } },
  { self_improvement_enabled: null },
  { description: 1 },
];
const REQUIRED = ["name", "scope_mode", "allowed_classifications", "threshold"];
testRejectedBeforeUpstreams(
  () => api,
  400,
  WRONG.flatMap(
    (one) =>
      [
        ["POST", SCORERS, { ...BODY, ...one }],
        ["PATCH", SCORER, one],
      ] as const,
  ),
);
testRejectedBeforeUpstreams(
  () => api,
  400,
  REQUIRED.map((name) => ["POST", SCORERS, { ...BODY, [name]: undefined }] as const),
);
testRejectedBeforeUpstreams(() => api, 400, [
  ["PATCH", SCORER, undefined],
  ["PATCH", SCORER, []],
]);
const ABSENT = ["no-uid", "0", `${RUN}0`];
testRejectedBeforeUpstreams(
  () => api,
  404,
  ABSENT.flatMap(
    (id) =>
      [
        ["GET", `/api/v1/factory/${id}/scorers`],
        ["POST", `/api/v1/factory/${id}/scorers`, BODY],
        ["PATCH", `${SCORERS}/${id}`, { name: "n" }],
        ["DELETE", `${SCORERS}/${id}`],
        ["GET", `${SCORERS}/${id}/results`],
        ["GET", `${SCORERS}/${id}/metrics`],
        ["GET", `${SCORERS}/${id}/self_improvement`],
        ["POST", `${SCORERS}/${id}/dispatch`, { run_ids: [RUN] }],
        ["GET", `/api/v1/factory/runs/${id}/scores`],
      ] as const,
  ),
);

describe("GET /factory/{uid}/scorers", () => {
  const list = (query = "") => api.call("GET", `${SCORERS}${query}`);
  const listed = (stats: object) => ({
    listScorers: {
      scorers: [aScorer({ agents: [{ agentUid: AGENT, includeDescendants: true, name: "foreman" }], stats })],
    },
  });
  test("returns statistics of all time and of the recent window apart (pass_rate_summary counts only the recent window)", async () => {
    api.respondWith(
      listed({
        resultCount: 900n,
        lastScoredAt: at(UPDATED),
        passCount: 1,
        failCount: 3,
        recentOutcomes: ["fail", "fail", "fail", "pass"],
      }),
    );
    const { body } = await list();
    expect(body).toEqual({
      scorers: [
        {
          ...RECORD,
          agent_uids: [AGENT],
          agents: [{ uid: AGENT, name: "foreman", include_descendants: true }],
          result_count: 900,
          last_scored_at: UPDATED,
          pass_rate_summary: {
            pass_count: 1,
            fail_count: 3,
            pass_rate: 0.25,
            recent_outcomes: ["fail", "fail", "fail", "pass"],
          },
        },
      ],
    });
    expect(asked("listScorers")).toMatchObject({ factoryUid: FACTORY, includeManaged: false, recentOutcomesLimit: 50 });
  });
  test("returns a pass rate of null, not 0, without scores", async () => {
    api.respondWith(listed({}));
    expect((await list()).body.scorers[0]).toMatchObject({
      result_count: 0,
      last_scored_at: null,
      pass_rate_summary: { pass_count: 0, fail_count: 0, pass_rate: null, recent_outcomes: [] },
    });
  });
  test.each<[string, object]>([
    ["?include_managed=true&recent_outcomes_limit=100", { includeManaged: true, recentOutcomesLimit: 100 }],
    ["?recent_outcomes_limit=1", { recentOutcomesLimit: 1 }],
    ["?start_date=2026-01-01&end_date=2026-02-01T00:00:00%2B02:00", { includeManaged: false, recentOutcomesLimit: 50 }],
    ["?cursor=ignored&limit=9999", {}],
  ])("accepts %s", async (query, expected) => {
    api.respondWith(listed({}));
    expect((await list(query)).status).toBe(200);
    expect(asked("listScorers")).toMatchObject(expected);
  });
  const dates = [
    "start_date=2026-01-01",
    "end_date=2026-01-01",
    "start_date=2026-01-01&end_date=2026-01-01",
    "start_date=2026-01-02&end_date=2026-01-01",
    "start_date=x&end_date=2026-01-01",
  ];
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [...dates, "recent_outcomes_limit=0", "recent_outcomes_limit=101", "include_managed=1"].map(
      (query) => ["GET", `${SCORERS}?${query}`] as const,
    ),
  );
  testUpstreamErrors(
    () => api,
    () => list(),
    [
      "listScorers",
      upstreamError("not_found", "factory_not_found"),
      upstreamError("permission_denied", "not_authorized"),
    ],
  );
});

describe("PATCH /factory/{uid}/scorers/{scorer_uid}", () => {
  const patch = (body: unknown) => api.call("PATCH", SCORER, { body });
  test.each<[string, object, string[], object]>([
    ["one member", { name: "New" }, ["name"], { name: "New" }],
    ["no known member, which the service refuses", { unknown: 1 }, [], {}],
    [
      "a sampling rate of null, which means 100",
      { sampling_rate: null },
      ["sampling_rate"],
      { samplingRate: undefined },
    ],
    ["a sampling rate of 0", { sampling_rate: 0 }, ["sampling_rate"], { samplingRate: 0 }],
    ["an agent_config of null, which clears it", { agent_config: null }, ["agent_config"], { agentConfig: undefined }],
    ["a rule of null, which clears it", { rule: null }, ["rule"], { rule: undefined }],
    ["a description of null, which clears it", { description: null }, ["description"], { description: "" }],
    [
      "agents alone, which leave the mode unchanged",
      { agent_uids: [AGENT] },
      ["agents"],
      { scopeMode: "", agents: [{ agentUid: AGENT, includeDescendants: false }] },
    ],
    [
      "a mode alone, which replaces the whole scope",
      { scope_mode: "all_agents" },
      ["scope_mode", "agents"],
      { scopeMode: "all_agents", agents: [] },
    ],
    [
      "both",
      { agents: [{ uid: AGENT }], scope_mode: "selected_agents" },
      ["scope_mode", "agents"],
      { scopeMode: "selected_agents", agents: [{ agentUid: AGENT }] },
    ],
    [
      "a known member beside unknown ones",
      { self_improvement_enabled: false, factory_uid: RUN },
      ["self_improvement_enabled"],
      { factoryUid: FACTORY, selfImprovementEnabled: false },
    ],
  ])("changes exactly %s", async (_what, body, paths, expected) => {
    api.respondWith({ updateScorer: { scorer: aScorer({ version: 2 }) } });
    const answer = await patch(body);
    expect([answer.status, answer.body]).toEqual([200, { ...RECORD, version: 2 }]);
    const { scorer, updateMask } = asked("updateScorer");
    expect([scorer.uid, updateMask.paths, membersOf(scorer, expected)]).toMatchObject([RECORD.uid, paths, expected]);
  });
  testUpstreamErrors(
    () => api,
    () => patch({ name: "n" }),
    [
      "updateScorer",
      upstreamError("not_found", "scorer_not_found"),
      upstreamError("conflict", "scorer_managed"),
      upstreamError("conflict", "scorer_name_taken"),
      upstreamError("invalid_argument", "scorer_invalid"),
      upstreamError("permission_denied", "human_required"),
    ],
  );
});

describe("DELETE /factory/{uid}/scorers/{scorer_uid}", () => {
  test("returns 204 without a body", async () => {
    api.respondWith({ deleteScorer: {} });
    expect(await api.call("DELETE", SCORER)).toMatchObject({ status: 204, body: "" });
    expect(asked("deleteScorer")).toMatchObject({ factoryUid: FACTORY, scorerUid: RECORD.uid });
  });
  testUpstreamErrors(
    () => api,
    () => api.call("DELETE", SCORER),
    [
      "deleteScorer",
      upstreamError("not_found", "scorer_not_found"),
      upstreamError("conflict", "scorer_managed"),
      upstreamError("permission_denied", "not_authorized"),
    ],
  );
});

describe("GET …/results", () => {
  const list = (query = "") => api.call("GET", `${SCORER}/results${query}`);
  const scored = {
    runUid: RUN,
    attemptUid: AGENT,
    attemptedAt: at(CREATED),
    status: "scored",
    isInFlight: true,
    classification: "bad",
    score: 0,
    outcome: "fail",
    scoredAt: at(UPDATED),
    conversationUid: TEAM,
    conversationTitle: "T",
    scoringRunUid: FACTORY,
    scoringRunTimeMs: 150_500n,
    scoringRunUsage: { total_tokens: 5 },
    reasonStatus: "available",
    reason: "Unkind.",
  };
  const failed = {
    runUid: RUN,
    attemptUid: AGENT,
    attemptedAt: at(CREATED),
    status: "failed",
    outcome: "",
    failureCode: "judge_failed",
    failureMessage: "No.",
    reasonStatus: "absent",
  };
  const SCORED = {
    run_id: RUN,
    attempt_id: AGENT,
    attempted_at: CREATED,
    status: "scored",
    is_in_flight: true,
    classification: "bad",
    score: 0,
    outcome: "fail",
    scored_at: UPDATED,
    conversation_id: TEAM,
    conversation_title: "T",
    scoring_run_id: FACTORY,
    scoring_run_time: "PT2M30.5S",
    scoring_run_usage: { total_tokens: 5 },
  };
  const FAILED = {
    run_id: RUN,
    attempt_id: AGENT,
    attempted_at: CREATED,
    status: "failed",
    is_in_flight: false,
    outcome: null,
    failure_code: "judge_failed",
    failure_message: "No.",
  };
  test("returns a failed attempt without classification and score, and no reasons unless asked", async () => {
    api.respondWith({ listResults: { results: [scored, failed], nextPageToken: "n" } });
    expect((await list("?limit=2&cursor=c")).body).toEqual({
      results: [SCORED, FAILED],
      page_info: { has_next_page: true, next_cursor: "n" },
    });
    expect(asked("listResults")).toMatchObject({
      factoryUid: FACTORY,
      scorerUid: RECORD.uid,
      pageSize: 2,
      pageToken: "c",
      includeReasons: false,
      runUids: [],
    });
  });
  test("returns one reason record per result with include_reasons", async () => {
    api.respondWith({ listResults: { results: [scored, failed], nextPageToken: "" } });
    const { body } = await list("?include_reasons=true");
    expect(body.results.map((each: { reasons: unknown }) => each.reasons)).toEqual([
      [{ run_id: RUN, status: "available", reason: "Unkind." }],
      [{ run_id: RUN, status: "absent" }],
    ]);
    expect(asked("listResults")).toMatchObject({ pageSize: 50, includeReasons: true });
  });
  const byRun = (ids: readonly string[]) => `?${ids.map((id) => `run_id=${encodeURIComponent(id)}`).join("&")}`;
  test("accepts 150 values of run_id of which 100 are distinct after trimming, in one page", async () => {
    api.respondWith({ listResults: { results: [], nextPageToken: "ignored" } });
    const { status, body } = await list(byRun([...uids(100), ...uids(50).map((uid) => ` ${uid}  `)]));
    expect([status, body]).toEqual([200, { results: [], page_info: { has_next_page: false } }]);
    expect(asked("listResults").runUids).toEqual(uids(100));
  });
  test("sends the nil UUID for malformed run ids", async () => {
    api.respondWith({ listResults: { results: [], nextPageToken: "" } });
    await list(byRun(["run_1", RUN.toUpperCase()]));
    expect(asked("listResults").runUids).toEqual([NIL_UUID, RUN]);
    api.respondWith({ listResults: { results: [], nextPageToken: "" } });
    expect((await list("?run_id=run_1")).body).toEqual({ results: [], page_info: { has_next_page: false } });
    expect(asked("listResults").runUids).toEqual([NIL_UUID]);
  });
  const wrong = [
    byRun(uids(101)),
    byRun([RUN, " "]),
    "?run_id=",
    `?run_id=${RUN}&limit=5`,
    `?run_id=${RUN}&cursor=c`,
    "?limit=0",
    "?limit=101",
    "?cursor=",
    "?include_reasons=yes",
  ];
  testRejectedBeforeUpstreams(
    () => api,
    400,
    wrong.map((query) => ["GET", `${SCORER}/results${query}`] as const),
  );
  testUpstreamErrors(
    () => api,
    () => list(),
    [
      "listResults",
      upstreamError("not_found", "scorer_not_found"),
      upstreamError("invalid_argument", "invalid_cursor"),
    ],
  );
});

describe("GET …/metrics", () => {
  const metrics = (query = "") => api.call("GET", `${SCORER}/metrics${query}`);
  const periods = [
    { label: "2026-11-19", passCount: 1n, failCount: 1n, costMicros: 1_500_000n },
    { label: "2026-11-20", passCount: 0n, failCount: 0n, costMicros: 0n },
    { label: "2026-11-21", passCount: 2n, failCount: 0n, costMicros: 250_000n },
  ];
  const found = {
    teamUid: TEAM,
    asOf: at(UPDATED),
    startDate: at(CREATED),
    endDate: at(UPDATED),
    groupByPeriod: "day",
    periods,
  };
  const SHOWN = {
    scorer_uid: RECORD.uid,
    factory_uid: FACTORY,
    team_uid: TEAM,
    as_of: UPDATED,
    start_date: CREATED,
    end_date: UPDATED,
    group_by_period: "day",
    period_list: ["2026-11-19", "2026-11-20", "2026-11-21"],
    pass_rate: {
      pass_count: 3,
      fail_count: 1,
      pass_rate: 0.75,
      series: [
        { pass_count: 1, fail_count: 1, pass_rate: 0.5 },
        { pass_count: 0, fail_count: 0, pass_rate: null },
        { pass_count: 2, fail_count: 0, pass_rate: 1 },
      ],
    },
  };
  test("returns the aggregate and a series by day, without cost", async () => {
    api.respondWith({ getScorerMetrics: found });
    expect((await metrics()).body).toEqual(SHOWN);
    expect(asked("getScorerMetrics")).toMatchObject({
      factoryUid: FACTORY,
      scorerUid: RECORD.uid,
      groupByPeriod: "day",
      includeCost: false,
    });
    expect(membersOf(asked("getScorerMetrics"), { startDate: 0, endDate: 0 })).toEqual({
      startDate: undefined,
      endDate: undefined,
    });
  });
  test("returns the cost per period with include_cost, and passes on the range", async () => {
    api.respondWith({ getScorerMetrics: found });
    expect(
      (
        await metrics(
          "?include_cost=true&start_date=2026-11-19&end_date=2026-11-21T00:00:00%2B01:00&group_by_period=week",
        )
      ).body,
    ).toEqual({ ...SHOWN, cost: { dollars: 1.75, series: [1.5, 0, 0.25] } });
    expect(asked("getScorerMetrics")).toMatchObject({
      groupByPeriod: "week",
      includeCost: true,
      startDate: at("2026-11-19T00:00:00Z"),
      endDate: at("2026-11-20T23:00:00Z"),
    });
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    ["group_by_period=year", "start_date=x", "include_cost=1", "group_by_period="].map(
      (query) => ["GET", `${SCORER}/metrics?${query}`] as const,
    ),
  );
  testUpstreamErrors(
    () => api,
    () => metrics(),
    [
      "getScorerMetrics",
      upstreamError("not_found", "scorer_not_found"),
      upstreamError("invalid_argument", "date_range_invalid"),
      upstreamError("invalid_argument", "too_many_periods"),
    ],
  );
});

const DISPATCHES = [
  [
    "of one run",
    `/api/v1/factory/${FACTORY}/runs/${RUN}/scorer_dispatch`,
    "scorer_uids",
    "scorerUids",
    { runUids: [RUN] },
  ],
  ["of one scorer", `${SCORER}/dispatch`, "run_ids", "runUids", { scorerUids: [RECORD.uid] }],
] as const;
describe.each(DISPATCHES)("manual dispatch %s", (_what, path, member, field, fixed) => {
  const dispatch = (ids: unknown) => api.call("POST", path, { body: { [member]: ids } });
  const results = [
    { scorerUid: RECORD.uid, runUid: RUN, status: "dispatched", scoringRunUid: AGENT },
    { scorerUid: RECORD.uid, runUid: TEAM, status: "failed", error: "In flight." },
  ];
  test("returns 200 and one outcome per pair, also when some failed; duplicates collapse", async () => {
    api.respondWith({ dispatchScoring: { results } });
    const { status, body } = await dispatch([...uids(2), ...uids(1), uids(1)[0]!.toUpperCase()]);
    expect([status, body]).toEqual([
      200,
      {
        results: [
          { scorer_uid: RECORD.uid, run_id: RUN, status: "dispatched", scoring_run_id: AGENT },
          { scorer_uid: RECORD.uid, run_id: TEAM, status: "failed", error: "In flight." },
        ],
      },
    ]);
    expect(asked("dispatchScoring")).toMatchObject({ factoryUid: FACTORY, ...fixed, [field]: uids(2) });
  });
  test("accepts 100 ids", async () => {
    api.respondWith({ dispatchScoring: { results: [] } });
    expect((await dispatch(uids(100))).status).toBe(200);
  });
  test("is not retried by clients after a 500, because scoring may have started", async () => {
    api.respondWith({ dispatchScoring: upstreamError("unavailable", "service_unavailable", { retryable: true }) });
    const { status, headers, body } = await dispatch(uids(1));
    expect([status, headers.get("x-should-retry"), body.retryable]).toEqual([500, "false", false]);
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [[], uids(101), [NIL_UUID], [...uids(2), NIL_UUID], ["x"], [1], "x", undefined].map(
      (ids) => ["POST", path, { [member]: ids }] as const,
    ),
  );
  testUpstreamErrors(
    () => api,
    () => dispatch([RUN]),
    [
      "dispatchScoring",
      upstreamError("not_found", "factory_not_found"),
      upstreamError("not_found", "scorer_not_found"),
      upstreamError("not_found", "run_not_found"),
      upstreamError("permission_denied", "not_authorized"),
      ...["scorer_managed", "run_not_scoreable", "agent_out_of_scope"].map((reason) =>
        upstreamError("invalid_argument", reason),
      ),
    ],
  );
});

describe("GET /factory/runs/{run_id}/scores", () => {
  const scores = () => api.call("GET", `/api/v1/factory/runs/${RUN}/scores`);
  test("returns the current attempt of each scorer; the literal path is not a factory", async () => {
    const known = {
      scorerId: 3n,
      scorerUid: RECORD.uid,
      scorerName: "Tone",
      attemptedAt: at(CREATED),
      triggerSource: "manual",
    };
    api.respondWith({
      listRunScores: {
        scores: [
          {
            ...known,
            attemptStatus: "scored",
            isInFlight: true,
            classification: "good",
            scoredAt: at(UPDATED),
            scoringRunUid: AGENT,
          },
          { ...known, attemptStatus: "failed", failureCode: "judge_failed" },
        ],
      },
    });
    const shown = {
      scorer_id: 3,
      scorer_uid: RECORD.uid,
      scorer_name: "Tone",
      attempted_at: CREATED,
      trigger_source: "manual",
    };
    expect((await scores()).body).toEqual({
      run_id: RUN,
      scores: [
        {
          ...shown,
          attempt_status: "scored",
          is_in_flight: true,
          classification: "good",
          scored_at: UPDATED,
          scoring_run_id: AGENT,
        },
        { ...shown, attempt_status: "failed", is_in_flight: false, failure_code: "judge_failed" },
      ],
    });
    expect(asked("listRunScores")).toMatchObject({ runUid: RUN });
  });
  testUpstreamErrors(() => api, scores, ["listRunScores", upstreamError("not_found", "run_not_found")]);
});

describe("POST /agent/runs/{runId}/scores", () => {
  const PATH = `/api/v1/agent/runs/${RUN}/scores`;
  const report = (results: unknown, key = "run_of_agent", path = PATH) =>
    api.call("POST", path, { body: { results }, key });
  test("returns 200 when every verdict is accepted, and names scorers as the judge did", async () => {
    api.respondWith({
      reportScores: {
        results: [
          { scorerId: "3", status: "accepted" },
          { scorerId: RECORD.uid, status: "accepted" },
        ],
      },
    });
    const { status, body } = await report([
      { scorer_id: 3, classification: "good", reason: "Kind." },
      { scorer_id: RECORD.uid, failed: true, classification: null },
    ]);
    expect([status, body]).toEqual([
      200,
      {
        results: [
          { scorer_id: 3, status: "accepted" },
          { scorer_id: RECORD.uid, status: "accepted" },
        ],
      },
    ]);
    expect(asked("reportScores")).toMatchObject({
      runUid: RUN,
      verdicts: [
        { scorerId: "3", classification: "good", reason: "Kind.", failed: false },
        { scorerId: RECORD.uid, failed: true },
      ],
    });
    expect(asked("reportScores").verdicts[1].classification).toBeUndefined();
  });
  test("returns 206 when a verdict is rejected", async () => {
    api.respondWith({ reportScores: { results: [{ scorerId: "3", status: "rejected", error: "Unknown label." }] } });
    const { status, body } = await report([{ scorer_id: 3, classification: "x" }]);
    expect([status, body]).toEqual([206, { results: [{ scorer_id: 3, status: "rejected", error: "Unknown label." }] }]);
  });
  test.each([
    ["a person's key", "member", PATH],
    ["an agent's key", "agent", PATH],
    ["another run's token", "run_of_agent", `/api/v1/agent/runs/${AGENT}/scores`],
  ])("returns the 404 of an absent run for %s", async (_who, key, path) => {
    api.respondWith({});
    expect((await report([{ scorer_id: 3 }], key, path)).body).toMatchObject({ status: 404, reason: "run_not_found" });
    expect(api.calls).toEqual([]);
  });
  test.each([[[]], [[{ classification: "good" }]], [[{ scorer_id: 1.5 }]], [[{ scorer_id: "" }]], [undefined]])(
    "returns 400 for %j",
    async (results) => {
      api.respondWith({});
      expect((await report(results)).status).toBe(400);
    },
  );
});

describe("self-improvement", () => {
  const PATH = `${SCORER}/self_improvement`;
  const config = {
    scorerUid: RECORD.uid,
    failureThreshold: 25,
    failureAgeDays: 7,
    runsPerWeek: 5,
    costLimitMicros: 5_000_000n,
    unreviewedFailures: 3,
    createdAt: at(CREATED),
    updatedAt: at(UPDATED),
  };
  const SHOWN = {
    scorer_uid: RECORD.uid,
    failure_threshold: 25,
    failure_age_days: 7,
    runs_per_week: 5,
    cost_limit_usd: 5,
    unreviewed_failures: 3,
    last_run_id: null,
    last_run_at: null,
    created_at: CREATED,
    updated_at: UPDATED,
  };
  test("is read with its last result", async () => {
    api.respondWith({
      getSelfImprovement: { selfImprovement: { ...config, lastRunUid: RUN, lastRunAt: at(UPDATED) } },
    });
    expect((await api.call("GET", PATH)).body).toEqual({ ...SHOWN, last_run_id: RUN, last_run_at: UPDATED });
  });
  test.each<[object, object]>([
    [{}, { failureThreshold: 25, failureAgeDays: 7, runsPerWeek: 5, costLimitMicros: 5_000_000n }],
    [
      { failure_threshold: 1, failure_age_days: 90, runs_per_week: 50, cost_limit_usd: 0.25 },
      { failureThreshold: 1, failureAgeDays: 90, runsPerWeek: 50, costLimitMicros: 250_000n },
    ],
  ])("is replaced by %j, absent members by their defaults", async (body, expected) => {
    api.respondWith({ putSelfImprovement: { selfImprovement: config } });
    const answer = await api.call("PUT", PATH, { body });
    expect([answer.status, answer.body]).toEqual([200, SHOWN]);
    expect(asked("putSelfImprovement")).toMatchObject({
      factoryUid: FACTORY,
      selfImprovement: { scorerUid: RECORD.uid, ...expected },
    });
  });
  test("is turned off with 204", async () => {
    api.respondWith({ deleteSelfImprovement: {} });
    expect((await api.call("DELETE", PATH)).status).toBe(204);
    expect(asked("deleteSelfImprovement")).toMatchObject({ factoryUid: FACTORY, scorerUid: RECORD.uid });
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [
      { failure_threshold: 0 },
      { failure_threshold: 1001 },
      { failure_age_days: 91 },
      { runs_per_week: 51 },
      { cost_limit_usd: 0 },
    ].map((body) => ["PUT", PATH, body] as const),
  );
  testUpstreamErrors(
    () => api,
    () => api.call("GET", PATH),
    [
      "getSelfImprovement",
      upstreamError("not_found", "self_improvement_not_found"),
      upstreamError("not_found", "scorer_not_found"),
    ],
  );
  testUpstreamErrors(
    () => api,
    () => api.call("PUT", PATH, { body: {} }),
    [
      "putSelfImprovement",
      upstreamError("permission_denied", "human_required"),
      upstreamError("conflict", "managed_by_files"),
      upstreamError("not_found", "scorer_not_found"),
    ],
  );
  testUpstreamErrors(
    () => api,
    () => api.call("DELETE", PATH),
    [
      "deleteSelfImprovement",
      upstreamError("permission_denied", "not_authorized"),
      upstreamError("conflict", "managed_by_files"),
      upstreamError("not_found", "scorer_not_found"),
    ],
  );
});
