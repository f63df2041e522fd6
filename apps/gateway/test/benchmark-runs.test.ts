import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { NIL_UUID } from "@millwright/ids";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { AGENT, RUN } from "./support/people.ts";
import { at, CREATED, FACTORY, UPDATED } from "./support/records.ts";
import {
  aBenchmarkRun,
  BENCHMARK_RUN,
  BENCHMARK_RUN_RECORD,
  BENCHMARK_RUN_UID,
  BENCHMARKS,
  CONFIGURATION_UID,
  SUITE,
  SUITE_RECORD,
  SUITE_UID,
  TASK_UID,
  TRIAL_UID,
} from "./support/scoring.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const asked = (method: string) => api.calls.find((call) => call.method === method)!.request;
const ABSENT = ["no-uid", "0", `${RUN}0`];
const REF = { factoryUid: FACTORY, suiteUid: SUITE_UID, runUid: BENCHMARK_RUN_UID };
const absent = upstreamError("not_found", "benchmark_run_not_found");

const progress = {
  elapsed_s: 12.5,
  trial_count: 6,
  task_count: 3,
  scorer_count: 1,
  total_credits: "1.5",
  cost_usd: 0,
  trial_progress: { total: 6, pending: 1, running: 1, succeeded: 3, failed: 1, cancelled: 0, completed: 4 },
  score_progress: {
    awaiting_trial: 2,
    pending: 0,
    judging: 1,
    scored: 2,
    finished_unscored: 0,
    not_scoreable: 1,
    received: 2,
    expected: 3,
  },
  configuration_stats: [
    {
      uid: CONFIGURATION_UID,
      id: 1,
      role: "baseline",
      display_name: "Now",
      trial_count: 3,
      pass_count: 0,
      fail_count: 0,
      pass_rate: null,
      avg_total_credits_per_trial: "0",
      avg_wall_time_s: 0,
    },
  ],
};
const coverage = { expected: 3, received: 2, rate: 0.666667 };
const interval = { low: 0.2, high: 1, confidence: 0.95, method: "wilson" };
const scoring = { pass_count: 2, fail_count: 0, pass_rate: 1, avg_score: 1, interval, coverage };
const difference = {
  difference: null,
  interval: null,
  pairs: 0,
  incomplete_pairs: 1,
  differing_pairs: 0,
  seed: 7,
  resamples: 1000,
  distinguishable: false,
  verdict: "not distinguishable",
};
const results = {
  benchmark_run_uid: BENCHMARK_RUN_UID,
  suite_name: "Bugs",
  run_state: "running",
  repetition_count: 3,
  provisional: true,
  incomplete_reason: null,
  trial_progress: progress.trial_progress,
  score_progress: progress.score_progress,
  trials_being_judged: 1,
  trials_scoring_finished: 2,
  run_metrics: { total_credits: "1.5" },
  summary_status: "pending",
  coverage,
  infra_failed_trials: 0,
  configurations: [
    {
      uid: CONFIGURATION_UID,
      id: 1,
      role: "candidate",
      display_name: "New",
      agent_configs: [],
      retry_count: 0,
      retried_trial_count: 0,
      infra_failed_trials: 0,
      metrics: {},
      coverage,
      scoring: { ...scoring, difference_to_baseline: { ...difference, baseline_configuration_uid: AGENT } },
    },
  ],
  scorers: [
    {
      scorer_uid: AGENT,
      scorer_id: 1,
      name: "Correctness",
      scorer_kind: "benchmark_task_correctness",
      version: 1,
      threshold: 0.5,
      coverage,
      configurations: [{ configuration_uid: CONFIGURATION_UID, ...scoring }],
    },
  ],
};

describe("POST …/runs", () => {
  const launch = (body: unknown, headers = {}) => api.call("POST", `${SUITE}/runs`, { body, headers });
  test.each<[string, object, object]>([
    [
      "what is needed",
      { repetition_count: 1 },
      { repetitionCount: 1, hasConfigurations: false, hasTasks: false, scorerSelection: [], parallelism: 0 },
    ],
    [
      "everything",
      {
        repetition_count: 3,
        configurations: [{ role: "baseline" }, { role: "candidate", model: "m" }],
        scorer_selection: [3, AGENT],
        tasks: [TASK_UID],
        historical_replay_run_uid: BENCHMARK_RUN_UID,
        parallelism: 100,
      },
      {
        configurations: [{ role: "baseline" }, { role: "candidate", model: "m" }],
        hasConfigurations: true,
        scorerSelection: ["3", AGENT],
        taskUids: [TASK_UID],
        hasTasks: true,
        historicalReplayRunUid: BENCHMARK_RUN_UID,
        parallelism: 100,
      },
    ],
    [
      "an empty scorer selection, which means all",
      { repetition_count: 1, scorer_selection: [] },
      { scorerSelection: [] },
    ],
  ])("returns 201 with uid and state for %s", async (_what, body, expected) => {
    api.respondWith({ launchBenchmark: { uid: BENCHMARK_RUN_UID, state: "pending" } });
    const answer = await launch(body, { "idempotency-key": "once" });
    expect([answer.status, answer.body]).toEqual([201, { uid: BENCHMARK_RUN_UID, state: "pending" }]);
    expect(asked("launchBenchmark")).toMatchObject({
      factoryUid: FACTORY,
      suiteUid: SUITE_UID,
      idempotencyKey: "once",
      ...expected,
    });
  });
  const failures: [string, ReturnType<typeof upstreamError>, number][] = [
    ["a 400", upstreamError("invalid_argument", "launch_invalid"), 400],
    ["a 404", upstreamError("not_found", "suite_not_found"), 404],
    ["a 403", upstreamError("permission_denied", "not_authorized"), 403],
    ["a retryable 409", upstreamError("conflict", "busy", { retryable: true }), 409],
    ["a 500", upstreamError("unavailable", "service_unavailable", { retryable: true }), 500],
  ];
  describe.each([
    ["without a key", {}],
    ["with an Idempotency-Key", { "idempotency-key": "k" }],
  ])("%s", (_with, headers) => {
    test.each(failures)("%s returns x-should-retry: false", async (_what, error, expected) => {
      api.respondWith({ launchBenchmark: error });
      const { status, headers: got, body } = await launch({ repetition_count: 1 }, headers);
      expect([status, got.get("x-should-retry"), body.retryable]).toEqual([expected, "false", false]);
    });
  });
  test("an invalid body and a missing credential return it too", async () => {
    api.respondWith({});
    const answers = [
      await launch({}),
      await api.call("POST", `${SUITE}/runs`, { key: null, body: {} }),
      await api.call("POST", `${BENCHMARKS}/x/runs`, { body: {} }),
    ];
    expect(answers.map(({ status, headers }) => [status, headers.get("x-should-retry")])).toEqual([
      [400, "false"],
      [401, "false"],
      [404, "false"],
    ]);
  });
  const wrong = [
    { repetition_count: 0 },
    { repetition_count: 1.5 },
    { repetition_count: "1" },
    {},
    { configurations: [] },
    { configurations: [{ role: "x" }] },
    { tasks: [] },
    { tasks: [""] },
    { scorer_selection: [1.5] },
    { parallelism: 0 },
    { parallelism: 101 },
  ];
  testRejectedBeforeUpstreams(
    () => api,
    400,
    wrong.map(
      (one) =>
        [
          "POST",
          `${SUITE}/runs`,
          { ...("repetition_count" in one || Object.keys(one).length === 0 ? {} : { repetition_count: 1 }), ...one },
        ] as const,
    ),
  );
  testUpstreamErrors(
    () => api,
    () => launch({ repetition_count: 1 }),
    [
      "launchBenchmark",
      upstreamError("not_found", "agent_not_found"),
      upstreamError("invalid_argument", "model_unknown"),
      upstreamError("conflict", "idempotency_mismatch"),
    ],
  );
});

describe("GET …/runs", () => {
  const list = (query = "") => api.call("GET", `${SUITE}/runs${query}`);
  test("returns a page whose statistics are null before the first trial", async () => {
    api.respondWith({ listBenchmarkRuns: { runs: [aBenchmarkRun()], nextPageToken: "n" } });
    expect((await list("?state=pending&state=running&limit=1&cursor=c")).body).toEqual({
      data: [BENCHMARK_RUN_RECORD],
      page_info: { has_next_page: true, next_cursor: "n" },
    });
    expect(asked("listBenchmarkRuns")).toMatchObject({
      factoryUid: FACTORY,
      suiteUid: SUITE_UID,
      states: ["pending", "running"],
      pageSize: 1,
      pageToken: "c",
      include: [],
    });
  });
  test("returns real zeros once there are trials", async () => {
    api.respondWith({ listBenchmarkRuns: { runs: [aBenchmarkRun({ progress })] } });
    expect((await list()).body.data).toEqual([{ ...BENCHMARK_RUN_RECORD, ...progress }]);
    expect(asked("listBenchmarkRuns")).toMatchObject({ states: [], pageSize: 50 });
  });
  test("returns the creator only with include, and passes on the other parameters", async () => {
    api.respondWith({ listBenchmarkRuns: { runs: [aBenchmarkRun({ results })] } });
    expect((await list("?include=creator&include=results")).body.data).toEqual([
      { ...BENCHMARK_RUN_RECORD, creator: SUITE_RECORD.creator, results },
    ]);
    expect(asked("listBenchmarkRuns").include).toEqual(["results"]);
  });
  test.each([NIL_UUID, "no-uid"])("is empty for the unknown suite %s", async (suite) => {
    api.respondWith({ listBenchmarkRuns: { runs: [] } });
    expect(await api.call("GET", `${BENCHMARKS}/${suite}/runs`)).toMatchObject({
      status: 200,
      body: { data: [], page_info: { has_next_page: false } },
    });
    expect(asked("listBenchmarkRuns").suiteUid).toBe(NIL_UUID);
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [
      "state=done",
      "state=queued",
      "limit=0",
      "limit=101",
      "include=everything",
      "include=creator,results",
      "cursor=",
    ].map((query) => ["GET", `${SUITE}/runs?${query}`] as const),
  );
  testUpstreamErrors(
    () => api,
    () => list(),
    [
      "listBenchmarkRuns",
      upstreamError("not_found", "factory_not_found"),
      upstreamError("invalid_argument", "invalid_cursor"),
    ],
  );
});

describe("one benchmark run", () => {
  const manifest = {
    content: {
      format: "millwright.benchmark.v1",
      agents: [{ name: "coder" }],
      configurations: [
        {
          role: "baseline",
          display_name: "Now",
          harness: "",
          model: "m",
          runner: "",
          harness_auth_secret_name: null,
          agent_configs: [{ agent_name: "coder", harness: "oz", model: "m", harness_auth_secret_name: null }],
        },
      ],
      tasks: [
        {
          title: "Fix it",
          prompt: "P",
          success_criteria: "S",
          rule: null,
          tags: ["t"],
          labels: {},
          repositories: [{ code_forge: "github", owner: "o", repo: "r", commit: "c0ffee" }],
        },
      ],
    },
    identifiers: {
      agents: [{ uid: AGENT }],
      configurations: [{ uid: CONFIGURATION_UID, id: 1, runner_uid: "" }],
      tasks: [{ uid: TASK_UID, id: 7, source_run_uid: null }],
      scorer_selection: ["3", AGENT],
    },
  };
  test("is returned with what was frozen at launch", async () => {
    api.respondWith({
      getBenchmarkRun: {
        run: aBenchmarkRun({
          state: "completed",
          startedAt: at(CREATED),
          completedAt: at(UPDATED),
          agentUid: AGENT,
          agentName: "coder",
          manifest,
          historicalReplayRunUid: RUN,
        }),
      },
    });
    const { body } = await api.call("GET", `${BENCHMARK_RUN}?include=launch_settings`);
    expect(body).toEqual({
      ...BENCHMARK_RUN_RECORD,
      state: "completed",
      started_at: CREATED,
      completed_at: UPDATED,
      agent_uid: AGENT,
      agent_name: "coder",
      historical_replay_run_uid: RUN,
      manifest,
      scorer_selection: [3, AGENT],
      configurations: [
        {
          uid: CONFIGURATION_UID,
          id: 1,
          role: "baseline",
          display_name: "Now",
          model: "m",
          harness_auth_secret_name: null,
          agent_configs: [
            { agent_uid: AGENT, agent_name: "coder", harness: "oz", model: "m", harness_auth_secret_name: null },
          ],
        },
      ],
      tasks: [
        {
          uid: TASK_UID,
          id: 7,
          title: "Fix it",
          prompt: "P",
          success_criteria: "S",
          rule: null,
          tags: ["t"],
          labels: {},
          source_run_id: null,
          starting_repo_refs: [{ code_forge: "github", owner: "o", repo: "r", ref: "c0ffee" }],
        },
      ],
    });
    expect(asked("getBenchmarkRun")).toMatchObject({ ...REF, include: ["launch_settings"] });
  });
  test("is cancelled", async () => {
    api.respondWith({ cancelBenchmarkRun: { run: aBenchmarkRun({ state: "cancelled" }) } });
    const { status, body } = await api.call("POST", `${BENCHMARK_RUN}/cancel`);
    expect([status, body]).toEqual([200, { ...BENCHMARK_RUN_RECORD, state: "cancelled" }]);
    expect(asked("cancelBenchmarkRun")).toMatchObject(REF);
  });
  testRejectedBeforeUpstreams(() => api, 400, [
    ["GET", `${BENCHMARK_RUN}?include=scores`],
    ["GET", `${BENCHMARK_RUN}?include=`],
  ]);
  testRejectedBeforeUpstreams(
    () => api,
    404,
    ABSENT.flatMap((id) =>
      ["", "/results", "/trials", "/trials/export", `/compare?other_run_uid=${RUN}`].map(
        (path) => ["GET", `${SUITE}/runs/${id}${path}`] as const,
      ),
    ),
  );
  testUpstreamErrors(
    () => api,
    () => api.call("GET", BENCHMARK_RUN),
    ["getBenchmarkRun", absent, upstreamError("permission_denied", "not_authorized")],
  );
  testUpstreamErrors(
    () => api,
    () => api.call("POST", `${BENCHMARK_RUN}/cancel`),
    [
      "cancelBenchmarkRun",
      absent,
      upstreamError("permission_denied", "not_authorized"),
      upstreamError("invalid_argument", "benchmark_run_finished"),
    ],
  );
});

describe("GET …/results", () => {
  const read = (query = "") => api.call("GET", `${BENCHMARK_RUN}/results${query}`);
  test("returns the results of the service", async () => {
    api.respondWith({ getBenchmarkResults: { results } });
    expect((await read()).body).toEqual(results);
    expect(asked("getBenchmarkResults")).toMatchObject({
      ...REF,
      taskUids: [],
      tags: [],
      configurationUids: [],
      scorerUids: [],
      include: [],
    });
  });
  test("passes on filters and includes", async () => {
    const row = {
      configuration_uid: CONFIGURATION_UID,
      trial_count: 1,
      pass_count: 1,
      fail_count: 0,
      pass_rate: 1,
      avg_score: 1,
      total_credits: "1",
      avg_wall_time_s: 2,
      pass_rate_interval: interval,
      coverage,
    };
    api.respondWith({
      getBenchmarkResults: { results: { ...results, task_metrics: [{ ...row, task_uid: TASK_UID }] } },
    });
    const { body } = await read(
      `?task_uid=${TASK_UID}&task_uid=${RUN}&tag=bug&configuration_uid=${CONFIGURATION_UID}&scorer_uid=${AGENT}&include=task_metrics&include=tag_metrics&include=task_metrics`,
    );
    expect(body.task_metrics).toHaveLength(1);
    expect(asked("getBenchmarkResults")).toMatchObject({
      taskUids: [TASK_UID, RUN],
      tags: ["bug"],
      configurationUids: [CONFIGURATION_UID],
      scorerUids: [AGENT],
      include: ["task_metrics", "tag_metrics"],
    });
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [
      "include=metrics",
      "include=",
      "tag=",
      "task_uid=",
      "task_uid=x",
      `scorer_uid=${NIL_UUID}`,
      "configuration_uid=1",
    ].map((query) => ["GET", `${BENCHMARK_RUN}/results?${query}`] as const),
  );
  testUpstreamErrors(
    () => api,
    () => read(),
    ["getBenchmarkResults", absent, upstreamError("invalid_argument", "filter_invalid")],
  );
});

describe("GET …/compare", () => {
  const compare = (query = `?other_run_uid=${RUN}`) => api.call("GET", `${BENCHMARK_RUN}/compare${query}`);
  test("returns the comparison of the service", async () => {
    const compared = {
      uid: BENCHMARK_RUN_UID,
      state: "completed",
      suite_version: 2,
      manifest_hash: "ab12",
      created_at: CREATED,
    };
    const comparison = {
      run: compared,
      other_run: { ...compared, uid: RUN },
      same_manifest: true,
      shared_tasks: ["Fix it"],
      changed_tasks: [],
      tasks_only_in_run: [],
      tasks_only_in_other_run: [],
      unmatched_configurations: [],
      configurations: [
        {
          role: "baseline",
          display_name: "Now",
          configuration_uid: CONFIGURATION_UID,
          other_configuration_uid: CONFIGURATION_UID,
          run: scoring,
          other_run: scoring,
          difference,
          distinguishable: false,
          verdict: "not distinguishable",
        },
      ],
    };
    api.respondWith({ compareBenchmarkRuns: { comparison } });
    expect((await compare()).body).toEqual(comparison);
    expect(asked("compareBenchmarkRuns")).toMatchObject({ ...REF, otherRunUid: RUN });
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    ["", "?other_run_uid=x", "?other_run_uid=", `?other_run_uid=${NIL_UUID}`].map(
      (query) => ["GET", `${BENCHMARK_RUN}/compare${query}`] as const,
    ),
  );
  testUpstreamErrors(
    () => api,
    () => compare(),
    ["compareBenchmarkRuns", absent, upstreamError("invalid_argument", "not_comparable")],
  );
});

const trial = {
  uid: TRIAL_UID,
  id: 1,
  configuration_uid: CONFIGURATION_UID,
  task_uid: TASK_UID,
  task_title: "Fix it",
  rep_index: 0,
  state: "failed",
  run_id: RUN,
  attempt_count: 2,
  terminal_reason: "timeout",
  created_at: CREATED,
};

describe("GET …/trials", () => {
  const TRIALS = `${BENCHMARK_RUN}/trials`;
  const list = (query = "") => api.call("GET", `${TRIALS}${query}`);
  test("returns a page", async () => {
    api.respondWith({ listTrials: { trials: [{ data: trial }], nextPageToken: "n" } });
    expect(
      (await list(`?limit=1&cursor=c&configuration_uid=${CONFIGURATION_UID}&configuration_uid=${AGENT}&state=failed`))
        .body,
    ).toEqual({ data: [trial], page_info: { has_next_page: true, next_cursor: "n" } });
    expect(asked("listTrials")).toMatchObject({
      ...REF,
      configurationUids: [CONFIGURATION_UID, AGENT],
      states: ["failed"],
      agentRunUid: "",
      pageSize: 1,
      pageToken: "c",
      include: [],
    });
  });
  test.each<[string, object]>([
    ["", { states: [], pageSize: 50, agentRunUid: "" }],
    ["?state=queued&state=pending&state=running", { states: ["pending", "running"] }],
    [
      "?include=scores&include=metrics&include=execution_history",
      { include: ["scores", "metrics", "execution_history"] },
    ],
    ["?include=details&include=scores", { include: ["scores", "metrics", "execution_history"] }],
    [`?agent_run_id=${RUN.toUpperCase()}`, { agentRunUid: RUN, pageSize: 1 }],
    [`?agent_run_id=${RUN}&limit=1&include=results`, { agentRunUid: RUN, pageSize: 1, include: ["scores", "metrics"] }],
  ])("accepts %s", async (query, expected) => {
    api.respondWith({ listTrials: { trials: [] } });
    expect((await list(query)).status).toBe(200);
    expect(asked("listTrials")).toMatchObject(expected);
  });
  test("agent_run_id matches any attempt; the service returns which", async () => {
    api.respondWith({
      listTrials: {
        trials: [
          {
            data: {
              ...trial,
              matched_attempt_number: 1,
              attempts: [
                { attempt_number: 1, run_id: AGENT, state: "FAILED" },
                { attempt_number: 2, run_id: RUN, state: "FAILED" },
              ],
            },
          },
        ],
      },
    });
    expect((await list(`?agent_run_id=${AGENT}`)).body.data[0]).toMatchObject({
      run_id: RUN,
      matched_attempt_number: 1,
    });
  });
  const withRun = ["limit=2", "cursor=c", "state=failed", `configuration_uid=${AGENT}`].map(
    (more) => `agent_run_id=${RUN}&${more}`,
  );
  const wrong = [
    ...withRun,
    `agent_run_id=${RUN}&agent_run_id=${AGENT}`,
    "agent_run_id=",
    "agent_run_id=run_1",
    `agent_run_id=${NIL_UUID}`,
    "configuration_uid=x",
    "scorer_uid=x",
    "scorer_id=3",
    "scorer=x",
    "scorer_uid=",
    "scorer_uid=a&scorer_uid=b",
    "state=done",
    "include=creator",
    "limit=0",
    "limit=101",
  ];
  testRejectedBeforeUpstreams(
    () => api,
    400,
    wrong.map((query) => ["GET", `${TRIALS}?${query}`] as const),
  );
  testUpstreamErrors(
    () => api,
    () => list(),
    [
      "listTrials",
      absent,
      upstreamError("invalid_argument", "filter_invalid"),
      upstreamError("invalid_argument", "invalid_cursor"),
    ],
  );
});

describe("GET …/trials/{trial_uid}", () => {
  const PATH = `${BENCHMARK_RUN}/trials/${TRIAL_UID}`;
  test.each([
    ["", []],
    ["?include=results", ["scores", "metrics"]],
    ["?include=details", ["scores", "metrics", "execution_history"]],
    ["?unknown=1", []],
  ])("returns the trial for %j", async (query, include) => {
    api.respondWith({ getTrial: { trial: { data: trial } } });
    const { status, body } = await api.call("GET", `${PATH}${query}`);
    expect([status, body]).toEqual([200, trial]);
    expect(asked("getTrial")).toMatchObject({ ...REF, trialUid: TRIAL_UID, include });
  });
  const selections = [
    "configuration_uid",
    "state",
    "agent_run_id",
    "task_uid",
    "tag",
    "limit",
    "cursor",
    "scorer_uid",
    "scorer_id",
    "scorer",
  ];
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [...selections.map((name) => `${name}=1`), "limit=", "include=all"].map(
      (query) => ["GET", `${PATH}?${query}`] as const,
    ),
  );
  testRejectedBeforeUpstreams(
    () => api,
    404,
    ABSENT.map((id) => ["GET", `${BENCHMARK_RUN}/trials/${id}`] as const),
  );
  testUpstreamErrors(
    () => api,
    () => api.call("GET", PATH),
    ["getTrial", absent, upstreamError("not_found", "trial_not_found")],
  );
});

describe("GET …/trials/export", () => {
  const read = (query = "") => api.call("GET", `${BENCHMARK_RUN}/trials/export${query}`);
  const scored = {
    ...trial,
    task_title: '=1+1, "x"',
    metrics: { total_credits: "0.5", dollars: 0.25, wall_time_s: 3 },
    scores: [
      {
        scorer_uid: AGENT,
        scorer_name: "Correctness",
        status: "scored",
        classification: "good",
        score: 1,
        outcome: "pass",
      },
      { scorer_uid: RUN, scorer_name: "Tone", status: "pending" },
    ],
  };
  const pages = {
    listTrials: ({ pageToken }: { pageToken: string }) =>
      pageToken === ""
        ? { trials: [{ data: scored }], nextPageToken: "2" }
        : { trials: [{ data: trial }], nextPageToken: "" },
  };
  test("streams every page as NDJSON, one trial per line", async () => {
    api.respondWith(pages);
    const { status, headers, body } = await read();
    expect([status, headers.get("content-type"), headers.get("content-disposition")]).toEqual([
      200,
      "application/x-ndjson",
      `attachment; filename="${BENCHMARK_RUN_UID}.ndjson"`,
    ]);
    const text: string = typeof body === "string" ? body : "";
    expect(
      text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual([scored, trial]);
    expect(api.calls.map(({ request }) => [request.pageToken, request.include])).toEqual([
      ["", ["scores", "metrics"]],
      ["2", ["scores", "metrics"]],
    ]);
  });
  test("streams CSV, one line per trial and scorer, in which no text is a formula", async () => {
    api.respondWith(pages);
    const { headers, body } = await read("?format=csv");
    expect(headers.get("content-type")).toBe("text/csv; charset=utf-8");
    const own = (title: string) =>
      [TRIAL_UID, TASK_UID, title, CONFIGURATION_UID, "0", "failed", "timeout", RUN, "2", CREATED, "", ""].join(",");
    expect(body.split("\r\n")).toEqual([
      "trial_uid,task_uid,task_title,configuration_uid,rep_index,state,terminal_reason,run_id,attempt_count,created_at,started_at,completed_at,total_credits,dollars,wall_time_s,total_tokens,scorer_uid,scorer_name,score_status,classification,score,outcome",
      `${own(`"'=1+1, ""x"""`)},0.5,0.25,3,,${AGENT},Correctness,scored,good,1,pass`,
      `${own(`"'=1+1, ""x"""`)},0.5,0.25,3,,${RUN},Tone,pending,,,`,
      `${own("Fix it")},,,,,,,,,,`,
      "",
    ]);
  });
  test("is aborted when a later page fails", async () => {
    api.respondWith({
      listTrials: ({ pageToken }: { pageToken: string }) => {
        if (pageToken !== "") throw absent;
        return { trials: [{ data: trial }], nextPageToken: "2" };
      },
    });
    await expect(read()).rejects.toThrow("terminated");
  });
  testRejectedBeforeUpstreams(() => api, 400, [["GET", `${BENCHMARK_RUN}/trials/export?format=xml`]]);
  testUpstreamErrors(
    () => api,
    () => read(),
    ["listTrials", absent],
  );
});
