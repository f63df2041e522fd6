import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { AGENT, RUN } from "./support/people.ts";
import { FACTORY } from "./support/records.ts";
import {
  aSuite,
  aTask,
  BENCHMARK_RUN,
  BENCHMARKS,
  CONFIGURATION_UID,
  SUITE,
  SUITE_RECORD,
  SUITE_UID,
  TASK_RECORD,
  TASK_UID,
} from "./support/scoring.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const asked = (method: string) => api.calls.find((call) => call.method === method)!.request;
const ABSENT = ["no-uid", "0", `${RUN}0`];
const WHOLE = { ...SUITE_RECORD, tasks: [TASK_RECORD], spawnable_descendant_agent_uids: [SUITE_RECORD.creator.uid] };
const NEW = { name: "Bugs", agent_uid: AGENT, factory_agent_type: "coder" };
const NEW_TASK = { title: "Fix it", prompt: "Fix the bug.", success_criteria: "Tests pass." };
const notAllowed = [
  upstreamError("not_found", "factory_not_found"),
  upstreamError("permission_denied", "not_authorized"),
];

describe("POST /benchmarks", () => {
  const create = (body: unknown, headers = {}) => api.call("POST", BENCHMARKS, { body, headers });
  test("returns 201 and the suite, and passes on the Idempotency-Key", async () => {
    api.respondWith({ createSuite: { suite: aSuite(), created: true } });
    const { status, body } = await create(NEW, { "idempotency-key": "once" });
    expect([status, body]).toEqual([201, WHOLE]);
    expect(asked("createSuite")).toMatchObject({
      suite: { factoryUid: FACTORY, uid: "", name: "Bugs", agentUid: AGENT, factoryAgentType: "coder", tasks: [] },
      idempotencyKey: "once",
    });
  });
  test("returns 200 for the existing suite of the same uid and content", async () => {
    api.respondWith({ createSuite: { suite: aSuite(), created: false } });
    const { status, body } = await create({ ...NEW, uid: SUITE_UID });
    expect([status, body]).toEqual([200, WHOLE]);
    expect(asked("createSuite").suite.uid).toBe(SUITE_UID);
  });
  test("omits members that a suite does not have", async () => {
    api.respondWith({
      createSuite: {
        suite: aSuite({
          description: undefined,
          configurations: [],
          creatorUid: "gone",
          tasks: [],
          spawnableDescendantAgentUids: [],
        }),
        created: true,
      },
    });
    const { description: _d, configurations: _c, creator: _p, ...rest } = WHOLE;
    expect((await create(NEW)).body).toEqual({ ...rest, tasks: [], spawnable_descendant_agent_uids: [] });
  });
  test("accepts tasks and configurations", async () => {
    api.respondWith({ createSuite: { suite: aSuite(), created: true } });
    const rule = { checks: [{ kind: "file", path: "a" }], pass: "p", fail: "f" };
    const tasks = [
      {
        ...NEW_TASK,
        source_run_id: RUN,
        starting_repo_refs: [{ code_forge: "github", owner: "o", repo: "r" }],
        tags: ["t"],
        labels: { a: "b" },
        rule,
      },
    ];
    const configurations = [
      {
        role: "candidate",
        display_name: "New",
        model: "m",
        runner_id: null,
        harness_auth_secret_name: "KEY",
        agent_configs: [{ agent_uid: AGENT, harness: "", model: "m" }],
      },
    ];
    expect((await create({ ...NEW, description: "D", tasks, configurations })).status).toBe(201);
    expect(asked("createSuite").suite).toMatchObject({
      description: "D",
      tasks: [
        {
          title: "Fix it",
          successCriteria: "Tests pass.",
          sourceRunUid: RUN,
          startingRepoRefs: [{ codeForge: "github", owner: "o", repo: "r", ref: "" }],
          tags: ["t"],
          labels: { a: "b" },
          rule,
        },
      ],
      configurations: [
        {
          uid: "",
          role: "candidate",
          displayName: "New",
          model: "m",
          runnerUid: "",
          harnessAuthSecretName: "KEY",
          agentConfigs: [{ agentUid: AGENT, model: "m" }],
        },
      ],
    });
  });
  const wrong = [
    { name: " " },
    { name: undefined },
    { agent_uid: undefined },
    { factory_agent_type: "" },
    { tasks: [{ ...NEW_TASK, title: " " }] },
    { configurations: [{ role: "control" }] },
    { configurations: [{}] },
  ];
  testRejectedBeforeUpstreams(
    () => api,
    400,
    wrong.map((one) => ["POST", BENCHMARKS, { ...NEW, ...one }] as const),
  );
  testUpstreamErrors(
    () => api,
    () => create(NEW),
    [
      "createSuite",
      ...notAllowed,
      upstreamError("invalid_argument", "suite_invalid"),
      upstreamError("invalid_argument", "agent_type_mismatch"),
      upstreamError("not_found", "agent_not_found"),
      upstreamError("not_found", "run_not_found"),
      ...["suite_name_taken", "suite_exists", "idempotency_mismatch"].map((reason) =>
        upstreamError("conflict", reason),
      ),
    ],
  );
});

describe("GET /benchmarks", () => {
  const list = (query = "") => api.call("GET", `${BENCHMARKS}${query}`);
  test("returns suites without tasks, in pages", async () => {
    api.respondWith({ listSuites: { suites: [aSuite({ tasks: [] })], nextPageToken: "n" } });
    expect((await list("?limit=1&cursor=c")).body).toEqual({
      suites: [SUITE_RECORD],
      page_info: { has_next_page: true, next_cursor: "n" },
    });
    expect(asked("listSuites")).toMatchObject({ factoryUid: FACTORY, pageSize: 1, pageToken: "c" });
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    ["limit=0", "limit=101", "cursor="].map((query) => ["GET", `${BENCHMARKS}?${query}`] as const),
  );
  testUpstreamErrors(
    () => api,
    () => list(),
    ["listSuites", ...notAllowed, upstreamError("invalid_argument", "invalid_cursor")],
  );
});

describe("one suite", () => {
  test("is read with tasks and configurations", async () => {
    api.respondWith({ getSuite: { suite: aSuite() } });
    expect((await api.call("GET", SUITE)).body).toEqual(WHOLE);
    expect(asked("getSuite")).toMatchObject({ factoryUid: FACTORY, suiteUid: SUITE_UID });
  });
  test.each<[string, object, string[], object]>([
    ["a name", { name: "New" }, ["name"], { name: "New" }],
    ["a description of null, which clears it", { description: null }, ["description"], {}],
    ["no configurations", { configurations: [] }, ["configurations"], { configurations: [] }],
    [
      "configurations that retain their identity",
      { configurations: [{ uid: CONFIGURATION_UID, role: "baseline" }] },
      ["configurations"],
      { configurations: [{ uid: CONFIGURATION_UID }] },
    ],
    [
      "all tasks, of which some retain their identity",
      {
        tasks: [
          { ...NEW_TASK, uid: TASK_UID },
          { ...NEW_TASK, title: "Other" },
        ],
      },
      ["tasks"],
      { tasks: [{ uid: TASK_UID }, { uid: "" }] },
    ],
    [
      "the agent",
      { agent_uid: AGENT, factory_agent_type: "coder" },
      ["agent_uid", "factory_agent_type"],
      { agentUid: AGENT, factoryAgentType: "coder" },
    ],
    ["nothing", {}, [], {}],
  ])("is changed by exactly %s", async (_what, body, paths, expected) => {
    api.respondWith({ updateSuite: { suite: aSuite() } });
    const answer = await api.call("PATCH", SUITE, { body });
    expect([answer.status, answer.body]).toEqual([200, WHOLE]);
    const { suite, updateMask } = asked("updateSuite");
    expect(suite).toMatchObject({ uid: SUITE_UID, factoryUid: FACTORY, ...expected });
    expect(new Set(updateMask.paths)).toEqual(new Set(paths));
    expect(suite.description).toBeUndefined();
  });
  test("is deleted with 204", async () => {
    api.respondWith({ deleteSuite: {} });
    expect((await api.call("DELETE", SUITE)).status).toBe(204);
    expect(asked("deleteSuite")).toMatchObject({ factoryUid: FACTORY, suiteUid: SUITE_UID });
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [
      { name: null },
      { name: " " },
      { agent_uid: null },
      { tasks: null },
      { tasks: [{ title: "x" }] },
      { configurations: null },
    ].map((body) => ["PATCH", SUITE, body] as const),
  );
  testRejectedBeforeUpstreams(
    () => api,
    404,
    ABSENT.flatMap((id) => (["GET", "DELETE"] as const).map((method) => [method, `${BENCHMARKS}/${id}`] as const)),
  );
  const absent = upstreamError("not_found", "suite_not_found");
  testUpstreamErrors(
    () => api,
    () => api.call("GET", SUITE),
    ["getSuite", absent, upstreamError("permission_denied", "not_authorized")],
  );
  testUpstreamErrors(
    () => api,
    () => api.call("PATCH", SUITE, { body: { name: "n" } }),
    [
      "updateSuite",
      absent,
      upstreamError("conflict", "suite_name_taken"),
      upstreamError("invalid_argument", "suite_invalid"),
    ],
  );
  testUpstreamErrors(
    () => api,
    () => api.call("DELETE", SUITE),
    ["deleteSuite", absent, upstreamError("conflict", "managed_by_files")],
  );
});

describe("tasks of a suite", () => {
  const TASKS = `${SUITE}/tasks`;
  const TASK = `${TASKS}/${TASK_UID}`;
  const add = (body: unknown, headers = {}) => api.call("POST", TASKS, { body, headers });
  test.each([
    [true, 201],
    [false, 200],
  ])("adding returns the task; new is %s: %i", async (created, expected) => {
    api.respondWith({ addTask: { task: aTask(), created } });
    const { status, body } = await add({ ...NEW_TASK, title: " Fix it " }, { "idempotency-key": "once" });
    expect([status, body]).toEqual([expected, TASK_RECORD]);
    expect(asked("addTask")).toMatchObject({
      factoryUid: FACTORY,
      suiteUid: SUITE_UID,
      task: { title: "Fix it", prompt: "Fix the bug.", successCriteria: "Tests pass.", tags: [] },
      idempotencyKey: "once",
    });
    expect(asked("addTask").task.sourceRunUid).toBeUndefined();
  });
  test("returns 409 with x-should-retry: false for the title of another task", async () => {
    api.respondWith({ addTask: upstreamError("conflict", "task_title_taken") });
    const { status, headers, body } = await add(NEW_TASK);
    expect([status, headers.get("x-should-retry"), body.reason]).toEqual([409, "false", "task_title_taken"]);
  });
  test.each<[string, object, string[], object]>([
    ["a title", { title: "New" }, ["title"], { title: "New" }],
    ["a source run", { source_run_id: RUN }, ["source_run_uid"], { sourceRunUid: RUN }],
    [
      "empty refs and tags, which clear them",
      { starting_repo_refs: [], tags: [] },
      ["starting_repo_refs", "tags"],
      { startingRepoRefs: [], tags: [] },
    ],
    ["a rule of null, which clears it", { rule: null }, ["rule"], {}],
    ["nothing", {}, [], {}],
  ])("a change is of exactly %s", async (_what, body, paths, expected) => {
    api.respondWith({ updateTask: { task: aTask() } });
    const answer = await api.call("PATCH", TASK, { body });
    expect([answer.status, answer.body]).toEqual([200, TASK_RECORD]);
    const { task, updateMask } = asked("updateTask");
    expect(task).toMatchObject({ uid: TASK_UID, ...expected });
    expect(new Set(updateMask.paths)).toEqual(new Set(paths));
    expect(task.rule).toBeUndefined();
  });
  test("an explicit null source_run_id clears the provenance", async () => {
    api.respondWith({ updateTask: { task: aTask({ sourceRunUid: undefined }) } });
    expect((await api.call("PATCH", TASK, { body: { source_run_id: null } })).body.source_run_id).toBeNull();
    expect([asked("updateTask").updateMask.paths, asked("updateTask").task.sourceRunUid]).toEqual([
      ["source_run_uid"],
      undefined,
    ]);
  });
  test("a task is read and deleted", async () => {
    api.respondWith({
      getTask: { task: aTask({ startingRepoRefs: [], tags: [], labels: {}, sourceRunUid: undefined }) },
      deleteTask: {},
    });
    expect((await api.call("GET", TASK)).body).toEqual({
      ...TASK_RECORD,
      starting_repo_refs: [],
      tags: [],
      labels: {},
      source_run_id: null,
    });
    expect((await api.call("DELETE", TASK)).status).toBe(204);
    expect([asked("getTask"), asked("deleteTask")]).toMatchObject(
      Array(2).fill({ factoryUid: FACTORY, suiteUid: SUITE_UID, taskUid: TASK_UID }),
    );
  });
  const members = ["title", "prompt", "success_criteria"];
  const badValues = members.flatMap((name) => [null, "", "  ", 1].map((value) => ({ [name]: value })));
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [...badValues, { tags: "x" }, { starting_repo_refs: [{ owner: "o" }] }].flatMap(
      (one) =>
        [
          ["PATCH", TASK, one],
          ["POST", TASKS, { ...NEW_TASK, ...one }],
        ] as const,
    ),
  );
  testRejectedBeforeUpstreams(
    () => api,
    400,
    members.map((name) => ["POST", TASKS, { ...NEW_TASK, [name]: undefined }] as const),
  );
  testRejectedBeforeUpstreams(
    () => api,
    404,
    ABSENT.flatMap(
      (id) =>
        [
          ["GET", `${TASKS}/${id}`],
          ["DELETE", `${TASKS}/${id}`],
          ["POST", `${BENCHMARKS}/${id}/tasks`, NEW_TASK],
        ] as const,
    ),
  );
  testUpstreamErrors(
    () => api,
    () => add(NEW_TASK),
    [
      "addTask",
      upstreamError("not_found", "suite_not_found"),
      upstreamError("not_found", "run_not_found"),
      upstreamError("invalid_argument", "suite_invalid"),
    ],
  );
  testUpstreamErrors(
    () => api,
    () => api.call("PATCH", TASK, { body: { title: "t" } }),
    [
      "updateTask",
      upstreamError("not_found", "task_not_found"),
      upstreamError("conflict", "task_title_taken"),
      upstreamError("not_found", "run_not_found"),
    ],
  );
  testUpstreamErrors(
    () => api,
    () => api.call("GET", TASK),
    ["getTask", upstreamError("not_found", "task_not_found")],
  );
  testUpstreamErrors(
    () => api,
    () => api.call("DELETE", TASK),
    ["deleteTask", upstreamError("not_found", "task_not_found"), upstreamError("conflict", "managed_by_files")],
  );
});

describe("POST /benchmarks/compose-task", () => {
  const compose = (body: unknown) => api.call("POST", `${BENCHMARKS}/compose-task`, { body });
  test("returns a draft without identity and success criteria", async () => {
    api.respondWith({ composeTask: { task: aTask({ uid: "", id: 0n, successCriteria: "" }) } });
    const { uid: _u, id: _i, success_criteria: _s, rule: _r, ...draft } = TASK_RECORD;
    expect(await compose({ run_id: RUN })).toMatchObject({ status: 200, body: draft });
    expect(asked("composeTask")).toMatchObject({ factoryUid: FACTORY, runUid: RUN });
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [{}, { run_id: "x" }].map((body) => ["POST", `${BENCHMARKS}/compose-task`, body] as const),
  );
  testUpstreamErrors(
    () => api,
    () => compose({ run_id: RUN }),
    ["composeTask", upstreamError("not_found", "run_not_found"), upstreamError("permission_denied", "not_authorized")],
  );
});

test("every endpoint requires authentication", async () => {
  const paths = [
    BENCHMARKS,
    SUITE,
    `${SUITE}/runs`,
    BENCHMARK_RUN,
    `${BENCHMARK_RUN}/results`,
    `${BENCHMARK_RUN}/trials`,
    `${BENCHMARK_RUN}/trials/export`,
  ];
  const answers = await Promise.all(paths.map((path) => api.call("GET", path, { key: null })));
  expect(answers.map(({ status }) => status)).toEqual(paths.map(() => 401));
});
