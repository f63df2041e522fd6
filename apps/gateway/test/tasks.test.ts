import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { RUN, TEAM, USER } from "./support/people.ts";
import { anArtifact, aRun, aTask, CONVERSATION, CREATED, FACTORY, TASK, UPDATED } from "./support/records.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const FACTORY_PATH = `/api/v1/factory/${FACTORY}`;
const TASKS = `${FACTORY_PATH}/tasks`;
const shown = {
  uid: TASK,
  factory_uid: FACTORY,
  conversation_id: CONVERSATION,
  run_id: RUN,
  title: "Mend it",
  description: null,
  stage: "TRIAGE",
  created_at: CREATED,
  updated_at: UPDATED,
};
const TASK_OF_ADA = () => aTask({ starterUid: USER });
const described = { conversationUid: CONVERSATION, newestRun: aRun(), firstRun: aRun(), outputs: [anArtifact()] };
const author = { type: "user", uid: USER, display_name: "Ada", email: "ada@example.com" };
const whole = { ...shown, author, outputs: [{ artifact_type: "FILE", created_at: CREATED, data: anArtifact().data }] };
const denied = [
  upstreamError("not_found", "factory_not_found"),
  upstreamError("not_found", "task_not_found"),
  upstreamError("permission_denied", "not_authorized"),
] as const;

const reads: [string, string, object][] = [
  ["getTask", `${TASKS}/${TASK}`, { factoryUid: FACTORY, taskUid: TASK }],
  [
    "getTaskByConversation",
    `${FACTORY_PATH}/task-by-conversation?conversation_id=${CONVERSATION}`,
    { factoryUid: FACTORY, conversationUid: CONVERSATION },
  ],
  ["getTaskByRun", `${FACTORY_PATH}/task-by-run?run_id=${RUN}`, { factoryUid: FACTORY, runUid: RUN }],
];
describe.each(reads)("%s", (method, path, asked) => {
  test("returns the task with its author and the outputs of its run trees", async () => {
    api.respondWith({ [method]: { task: TASK_OF_ADA() }, describeConversation: described });
    expect((await api.call("GET", path)).body).toEqual(whole);
    expect(api.calls).toMatchObject([
      { method, request: asked },
      { method: "describeConversation", request: { conversationUid: CONVERSATION, runUid: "", teamUid: TEAM } },
    ]);
  });
  test("returns the task even if its conversation is hidden", async () => {
    api.respondWith({
      [method]: { task: aTask() },
      describeConversation: upstreamError("not_found", "conversation_not_found"),
    });
    expect((await api.call("GET", path)).body).toEqual({ ...shown, outputs: [] });
  });
  test("reports if its outputs cannot be read", async () => {
    api.respondWith({
      [method]: { task: aTask() },
      describeConversation: upstreamError("unavailable", "service_unavailable"),
    });
    expect(await api.call("GET", path)).toMatchObject({ status: 500, body: { retryable: true } });
  });
  testUpstreamErrors(
    () => api,
    () => api.call("GET", path),
    [method, ...denied],
  );
});

describe("the list of tasks", () => {
  const page = { listTasks: { tasks: [aTask({ description: "d", stage: "REVIEW" })], nextPageToken: "n" } };
  test("is read with the defaults, without outputs", async () => {
    api.respondWith(page);
    expect((await api.call("GET", TASKS)).body).toEqual({
      tasks: [{ ...shown, description: "d", stage: "REVIEW" }],
      page_info: { has_next_page: true, next_cursor: "n" },
    });
    expect(api.calls[0]!.request).toMatchObject({
      factoryUid: FACTORY,
      stages: [],
      createdBy: [],
      q: "",
      sortBy: "created_at",
      sortOrder: "desc",
      pageSize: 50,
      pageToken: "",
    });
  });
  test("is read with every filter", async () => {
    api.respondWith(page);
    await api.call(
      "GET",
      `${TASKS}?stage=TRIAGE&stage=REVIEW&q=100%25&created_after=2026-11-20&created_before=2026-11-21&updated_after=2026-11-20T10:00:00Z&created_by=a@example.com&created_by=b@example.com&sort_by=updated_at&sort_order=asc&limit=1&cursor=c`,
    );
    const { request } = api.calls[0]!;
    expect(request).toMatchObject({
      stages: ["TRIAGE", "REVIEW"],
      createdBy: ["a@example.com", "b@example.com"],
      q: "100%",
      sortBy: "updated_at",
      sortOrder: "asc",
      pageSize: 1,
      pageToken: "c",
    });
    const seconds = [request.createdAfter, request.createdBefore, request.updatedAfter].map((time) =>
      Number(time.seconds),
    );
    expect(seconds).toEqual(
      ["2026-11-20", "2026-11-21", "2026-11-20T10:00:00Z"].map((time) => Date.parse(time) / 1000),
    );
  });
  test("reads requested live data with one call per page, without hidden runs", async () => {
    const conversation = {
      conversationUid: CONVERSATION,
      runUid: RUN,
      state: "CLAIMED",
      isRunTypeCancellable: true,
      outputs: [anArtifact()],
    };
    const ask = async (query: string, conversations: object[]) => {
      api.respondWith({
        listTasks: { tasks: [aTask({ ticketSource: "jira", ticketId: "X-1" })] },
        describeConversations: { conversations },
      });
      return (await api.call("GET", `${TASKS}?${query}`)).body.tasks[0];
    };
    expect(await ask("full_list=false", [conversation])).toEqual(shown);
    expect(api.calls.map(({ method }) => method)).toEqual(["listTasks"]);
    expect(await ask("full_list=true", [conversation])).toEqual({
      ...shown,
      outputs: whole.outputs,
      ticket_source: "jira",
      ticket_id: "X-1",
    });
    expect(api.calls[1]).toMatchObject({
      method: "describeConversations",
      request: { conversationUids: [CONVERSATION], withOutputs: true },
    });
    expect(await ask("full_list=true", [])).toEqual({ ...shown, outputs: [], ticket_source: "jira", ticket_id: "X-1" });
    expect(await ask("include_current_run=true", [conversation])).toEqual({
      ...shown,
      current_run: { run_id: RUN, state: "CLAIMED", is_run_type_cancellable: true },
    });
    expect(await ask("include_current_run=true", [{ conversationUid: CONVERSATION, hidden: true }])).toEqual(shown);
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [
      "stage=triage",
      "created_after=x",
      "created_before=2026-02-30",
      "updated_after=now",
      "sort_by=title",
      "sort_order=up",
      "limit=0",
      "limit=101",
      "limit=-1",
      "limit=x",
      "cursor=",
      "created_by=",
      "full_list=1",
      "include_current_run=x",
    ].map((query) => ["GET", `${TASKS}?${query}`] as const),
  );
  testUpstreamErrors(
    () => api,
    () => api.call("GET", TASKS),
    [
      "listTasks",
      upstreamError("not_found", "factory_not_found"),
      upstreamError("invalid_argument", "invalid_cursor"),
      upstreamError("permission_denied", "not_authorized"),
    ],
  );
});

describe("the tasks of a team in one stage", () => {
  const OF_TEAM = `/api/v1/team/${TEAM}/tasks`;
  test("are listed with the run of each, if requested", async () => {
    const conversation = { conversationUid: CONVERSATION, runUid: RUN, state: "CLAIMED", isRunTypeCancellable: true };
    api.respondWith({
      listTeamTasks: { tasks: [aTask({ stage: "REVIEW" })], nextPageToken: "n" },
      describeConversations: { conversations: [conversation] },
    });
    const { body } = await api.call("GET", `${OF_TEAM}?stage=REVIEW&limit=2&cursor=c&include_current_run=true`);
    expect(body).toMatchObject({
      tasks: [{ stage: "REVIEW", current_run: { run_id: RUN } }],
      page_info: { has_next_page: true, next_cursor: "n" },
    });
    expect(api.calls[0]!.request).toMatchObject({ teamUid: TEAM, stage: "REVIEW", pageSize: 2, pageToken: "c" });
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    ["", "?stage=DONE", "?stage=", "?stage=REVIEW&limit=0", "?stage=REVIEW&limit=101"].map(
      (query) => ["GET", `${OF_TEAM}${query}`] as const,
    ),
  );
  testUpstreamErrors(
    () => api,
    () => api.call("GET", `${OF_TEAM}?stage=REVIEW`),
    [
      "listTeamTasks",
      upstreamError("not_found", "team_not_found"),
      upstreamError("invalid_argument", "invalid_cursor"),
      upstreamError("permission_denied", "not_authorized"),
    ],
  );
});

describe("PATCH", () => {
  const patch = (body: unknown) => api.call("PATCH", `${TASKS}/${TASK}`, { body });
  test.each<[object, string[], object]>([
    [{}, [], {}],
    [{ title: " New " }, ["title"], { title: "New" }],
    [{ description: "d" }, ["description"], { description: "d" }],
    [{ description: null }, ["description"], { description: undefined }],
    [{ description: "" }, ["description"], { description: undefined }],
    [{ stage: "COMPLETE" }, ["stage"], { stage: "COMPLETE" }],
    [{ title: "t", stage: "SPEC", run_id: "ignored" }, ["stage", "title"], { title: "t", stage: "SPEC" }],
  ])("%j changes exactly what is sent", async (body, paths, fields) => {
    api.respondWith({ updateTask: { task: TASK_OF_ADA() }, describeConversation: described });
    expect(await patch(body)).toMatchObject({ status: 200, body: whole });
    const { request } = api.calls[0]!;
    expect([request.factoryUid, request.task.uid, new Set(request.updateMask.paths)]).toEqual([
      FACTORY,
      TASK,
      new Set(paths),
    ]);
    for (const [name, value] of Object.entries(fields)) expect([name, request.task[name]]).toEqual([name, value]);
  });
  testUpstreamErrors(
    () => api,
    () => patch({ stage: "SPEC" }),
    ["updateTask", ...denied],
  );
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [
      { title: "" },
      { title: " " },
      { title: null },
      { title: 1 },
      { description: 1 },
      { stage: "DONE" },
      { stage: null },
      [],
      "x",
      null,
    ].map((body) => ["PATCH", `${TASKS}/${TASK}`, body] as const),
  );
});

describe("POST", () => {
  const post = (body: unknown, headers = {}) => api.call("POST", TASKS, { body, headers });
  test.each<[object, object]>([
    [
      { title: " New ", conversation_id: CONVERSATION },
      { title: "New", conversationUid: CONVERSATION, stage: "", description: undefined },
    ],
    [
      { title: "t", conversation_id: "c", stage: "SPEC", description: "d" },
      { conversationUid: "c", stage: "SPEC", description: "d" },
    ],
  ])("creates a task from %j", async (body, fields) => {
    api.respondWith({ createTask: { task: TASK_OF_ADA() }, describeConversation: described });
    expect(await post(body, { "idempotency-key": "k" })).toMatchObject({ status: 201, body: whole });
    const { request } = api.calls[0]!;
    expect([request.factoryUid, request.idempotencyKey]).toEqual([FACTORY, "k"]);
    for (const [name, value] of Object.entries(fields)) expect([name, request[name]]).toEqual([name, value]);
  });
  testUpstreamErrors(
    () => api,
    () => post({ title: "t", conversation_id: CONVERSATION }),
    [
      "createTask",
      upstreamError("not_found", "factory_not_found"),
      upstreamError("permission_denied", "not_authorized"),
      upstreamError("invalid_argument", "invalid_conversation"),
      upstreamError("conflict", "conversation_bound"),
    ],
  );
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [
      {},
      { title: "t" },
      { conversation_id: "c" },
      { title: " ", conversation_id: "c" },
      { title: "t", conversation_id: 1 },
      { title: "t", conversation_id: "c", stage: "DONE" },
      [],
    ].map((body) => ["POST", TASKS, body] as const),
  );
});

describe("DELETE", () => {
  test("returns no body", async () => {
    api.respondWith({ deleteTask: {} });
    expect(await api.call("DELETE", `${TASKS}/${TASK}`)).toMatchObject({ status: 204, body: "" });
    expect(api.calls).toMatchObject([{ method: "deleteTask", request: { factoryUid: FACTORY, taskUid: TASK } }]);
  });
  testUpstreamErrors(
    () => api,
    () => api.call("DELETE", `${TASKS}/${TASK}`),
    ["deleteTask", ...denied],
  );
});

describe("cancel", () => {
  const cancel = () => api.call("POST", `${TASKS}/${TASK}/cancel`);
  test("returns the updated task", async () => {
    api.respondWith({ cancelTask: { task: TASK_OF_ADA() }, describeConversation: described });
    expect(await cancel()).toMatchObject({ status: 200, body: whole });
    expect(api.calls[0]).toMatchObject({ method: "cancelTask", request: { factoryUid: FACTORY, taskUid: TASK } });
  });
  testUpstreamErrors(() => api, cancel, [
    "cancelTask",
    ...denied,
    upstreamError("not_found", "run_not_found"),
    upstreamError("permission_denied", "run_access_denied"),
    upstreamError("invalid_argument", "run_already_finished"),
    upstreamError("unsupported", "run_not_cancellable"),
    upstreamError("conflict", "run_pending", { retryable: true }),
  ]);
});

testRejectedBeforeUpstreams(() => api, 400, [
  ["GET", `${FACTORY_PATH}/task-by-run`],
  ["GET", `${FACTORY_PATH}/task-by-run?run_id=`],
  ["GET", `${FACTORY_PATH}/task-by-conversation`],
  ["GET", `${FACTORY_PATH}/task-by-conversation?run_id=${RUN}`],
]);
testRejectedBeforeUpstreams(() => api, 404, [
  ["GET", `${TASKS}/x`],
  ["PATCH", `${TASKS}/x`, {}],
  ["DELETE", `${TASKS}/x`],
  ["POST", `${TASKS}/x/cancel`],
  ["GET", "/api/v1/factory/x/tasks"],
  ["GET", `/api/v1/factory/x/tasks/${TASK}`],
  ["GET", `/api/v1/factory/x/task-by-run?run_id=${RUN}`],
]);
