import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { AGENT, OTHER_TEAM, RUN, TEAM, USER } from "./support/people.ts";
import { anArtifact, aRun, at, CONVERSATION, CREATED, UPDATED } from "./support/records.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const RUNS = "/api/v1/agent/runs";
const created = { createRuns: { runs: [{ run: aRun(), created: true }] } };
const requested = () => api.calls[0]!.request.runs[0];
const post = (path: string, body: unknown, more: { key?: string; headers?: Record<string, string> } = {}) =>
  api.call("POST", path, { body, ...more });

describe.each(["/api/v1/agent/run", RUNS])("POST %s", (path) => {
  test("queues a run of the caller's team and returns its ids", async () => {
    api.respondWith(created);
    const answer = await post(path, { prompt: "Mend the roof", unknown_member: { deep: [1] } });
    expect([answer.status, answer.body]).toEqual([200, { run_id: RUN, task_id: RUN, state: "QUEUED" }]);
    expect(requested()).toMatchObject({
      prompt: "Mend the roof",
      ownerType: "team",
      ownerUid: TEAM,
      source: "API",
      mode: "",
      config: {},
      metadata: {},
      interactive: false,
    });
    expect(api.calls[0]!.caller.principal.uid).toBe(USER);
    for (const absent of [
      "title",
      "skill",
      "agentUid",
      "agentName",
      "conversationUid",
      "parentRunUid",
      "causeKey",
      "idempotencyKey",
      "factoryUid",
    ])
      expect(requested()[absent]).toBeUndefined();
  });
  test("passes on every published member", async () => {
    api.respondWith(created);
    await post(path, {
      prompt: "p",
      title: "t",
      config: { model_id: "auto", harness: { type: "oz" }, skills: ["a"], idle_timeout_minutes: 5 },
      skill: "o/r:s",
      mode: "plan",
      agent_identity_uid: AGENT,
      conversation_id: CONVERSATION,
      parent_run_id: RUN,
      interactive: true,
      metadata: { ticket: "X-1" },
      attachments: [{ file_name: "a.txt", mime_type: "text/plain", data: "aGk=" }],
      images: [{ file_name: "b.png", mime_type: "image/png", data: "" }],
    });
    expect(requested()).toMatchObject({
      prompt: "p",
      title: "t",
      config: { model_id: "auto", harness: { type: "oz" }, skills: ["a"], idle_timeout_minutes: 5 },
      skill: "o/r:s",
      mode: "plan",
      agentUid: AGENT,
      conversationUid: CONVERSATION,
      parentRunUid: RUN,
      interactive: true,
      metadata: { ticket: "X-1" },
    });
    const files = requested().attachments.map((file: any) => [
      file.fileName,
      file.mimeType,
      Buffer.from(file.data).toString(),
    ]);
    expect(files).toEqual([
      ["a.txt", "text/plain", "hi"],
      ["b.png", "image/png", ""],
    ]);
  });
  test("ignores members that clients cannot set", async () => {
    api.respondWith(created);
    await post(path, { prompt: "p", config: { name: "n", experimental: { fast: [true] } } });
    expect(requested().config).toEqual({ name: "n" });
  });
  test("with an agent's key is executed by the agent unless another is given, on behalf of its principal", async () => {
    for (const [body, agentUid, creatorUid] of [
      [{}, AGENT, undefined],
      [{ agent_name: "implementer" }, undefined, undefined],
      [{ agent_identity_uid: RUN, on_behalf_of: "ada@example.com" }, RUN, USER],
    ] as const) {
      api.respondWith(created);
      await post(path, { prompt: "p", ...body }, { key: "agent" });
      expect([requested().agentUid, requested().creatorUid]).toEqual([agentUid, creatorUid]);
    }
  });
  test("returns the first response when it is repeated, whatever the run's state", async () => {
    api.respondWith({ createRuns: { runs: [{ run: aRun({ state: "SUCCEEDED" }), created: false }] } });
    expect((await post(path, { prompt: "p" }, { headers: { "idempotency-key": "k-1" } })).body).toEqual({
      run_id: RUN,
      task_id: RUN,
      state: "QUEUED",
    });
  });
  test("reports when the system is at capacity", async () => {
    api.respondWith({ createRuns: { runs: [{ run: aRun(), created: true, atCapacity: true }] } });
    expect((await post(path, { prompt: "p" })).body.at_capacity).toBe(true);
  });
  test("accepts an Idempotency-Key for 24 hours", async () => {
    api.respondWith(created);
    await post(path, { prompt: "p" }, { headers: { "idempotency-key": "k-1" } });
    expect([requested().idempotencyKey, requested().causeKey]).toEqual(["k-1", undefined]);
  });
  test("creates a child run with a run's token, once per tool call", async () => {
    api.respondWith(created);
    await post(
      path,
      { prompt: "p", agent_name: "implementer" },
      { key: "run_of_agent", headers: { "idempotency-key": "c7-2" } },
    );
    expect(requested()).toMatchObject({
      parentRunUid: RUN,
      source: "ORCHESTRATION",
      causeKey: `${RUN}:c7-2`,
      agentName: "implementer",
      ownerType: "team",
      ownerUid: TEAM,
    });
    expect([requested().idempotencyKey, requested().agentUid]).toEqual([undefined, undefined]);
    expect(api.calls[0]!.caller.run).toMatchObject({ runUid: RUN, attempt: 1 });
  });
  test("is executed by the run's agent with a run's token, unless another is given", async () => {
    api.respondWith(created);
    await post(path, { prompt: "p" }, { key: "run_of_agent" });
    expect([requested().agentUid, requested().parentRunUid]).toEqual([AGENT, RUN]);
  });
});

describe("POST /agent/runs/{runId}/retry", () => {
  const answer = { retryRun: { run: { run: aRun(), created: true, atCapacity: true } } };
  test("returns the new run's ids", async () => {
    api.respondWith(answer);
    const { status, body } = await post(`${RUNS}/${RUN}/retry`, undefined, { headers: { "idempotency-key": "k-1" } });
    expect([status, body]).toEqual([200, { run_id: RUN, task_id: RUN, state: "QUEUED", at_capacity: true }]);
    expect(api.calls[0]!.request).toMatchObject({ runUid: RUN, idempotencyKey: "k-1", causeKey: "" });
  });
  test("is executed once per tool call with a run's token", async () => {
    api.respondWith(answer);
    await post(`${RUNS}/${RUN}/retry`, undefined, { key: "run_of_agent", headers: { "idempotency-key": "c7-2" } });
    expect(api.calls[0]!.request).toMatchObject({ idempotencyKey: "", causeKey: `${RUN}:c7-2` });
  });
});

describe("a run that its client executes", () => {
  const CLIENT = "0198c2d0-0000-7000-8000-00000000c11e";
  const started = { command: ["npm", "test"], client_id: CLIENT };
  const local = {
    createLocalRun: { run: aRun(), reportEveryMs: 10_000 },
    reportLocalRun: {
      lease: "held",
      ackedSeq: 2n,
      followups: [{ uid: RUN, text: "And lint." }],
      run: aRun(),
      expiresAt: at(CREATED),
    },
  };
  test("is created with its command as title and prompt", async () => {
    api.respondWith(local);
    const { status, body } = await post(`${RUNS}/local`, started, { headers: { "idempotency-key": "k" } });
    expect([status, body]).toEqual([200, { run_id: RUN, state: "QUEUED", report_every_ms: 10_000 }]);
    expect(api.calls[0]!.request).toMatchObject({
      clientUid: CLIENT,
      command: ["npm", "test"],
      run: { prompt: "npm test", title: "npm test", source: "LOCAL", ownerUid: TEAM, idempotencyKey: "k" },
    });
  });
  test("returns lease and follow-ups to its reports", async () => {
    api.respondWith(local);
    const events = [
      { seq: 1, kind: "output", stream: "stderr", text: "x", at: CREATED },
      { seq: 2, kind: "followup_received", followup_id: RUN },
      { seq: 3, kind: "ended", exit_code: 0, output: "x" },
    ];
    const { status, body } = await post(`${RUNS}/${RUN}/report`, { client_id: CLIENT, events });
    expect([status, body]).toEqual([
      200,
      {
        lease: "held",
        lease_expires_at: CREATED,
        acked_seq: 2,
        followups: [{ followup_id: RUN, message: "And lint." }],
        state: "QUEUED",
      },
    ]);
    expect(api.calls[0]!.request).toMatchObject({
      runUid: RUN,
      clientUid: CLIENT,
      events: [
        { seq: 1n, event: { case: "output", value: { stream: "stderr", text: "x" } } },
        { seq: 2n, event: { case: "followupUid", value: RUN } },
        { seq: 3n, event: { case: "end", value: { exitCode: 0, interrupted: false, output: "x" } } },
      ],
    });
  });
  testRejectedBeforeUpstreams(() => api, 400, [
    ["POST", `${RUNS}/local`, {}],
    ["POST", `${RUNS}/local`, { ...started, command: [] }],
    ["POST", `${RUNS}/local`, { ...started, client_id: "me" }],
    ["POST", `${RUNS}/${RUN}/report`, {}],
    [
      "POST",
      `${RUNS}/${RUN}/report`,
      { client_id: CLIENT, events: [{ seq: 0, kind: "output", stream: "stdout", text: "" }] },
    ],
    [
      "POST",
      `${RUNS}/${RUN}/report`,
      { client_id: CLIENT, events: [{ seq: 1, kind: "output", stream: "other", text: "" }] },
    ],
    [
      "POST",
      `${RUNS}/${RUN}/report`,
      { client_id: CLIENT, events: [{ seq: 1, kind: "output", stream: "stdout", text: "x".repeat(65_537) }] },
    ],
    ["POST", `${RUNS}/${RUN}/report`, { client_id: CLIENT, events: [{ seq: 1, kind: "unheard_of" }] }],
  ]);
});

describe("attached files", () => {
  const file = (bytes: number) => ({
    file_name: "a.bin",
    mime_type: "application/octet-stream",
    data: Buffer.alloc(bytes).toString("base64"),
  });
  const tenMegabytes = file(10_000_000);
  test("accepts five attachments of 10 MB", async () => {
    api.respondWith(created);
    expect(
      (
        await post(RUNS, {
          prompt: "p",
          attachments: [tenMegabytes, tenMegabytes, tenMegabytes],
          images: [tenMegabytes, tenMegabytes],
        })
      ).status,
    ).toBe(200);
    expect(requested().attachments.map((one: any) => one.data.length)).toEqual(Array(5).fill(10_000_000));
  });
  test("names unnamed images by position and type", async () => {
    api.respondWith(created);
    await post(RUNS, {
      prompt: "p",
      images: [
        { mime_type: "image/webp", data: "" },
        { file_name: "b.png", mime_type: "image/png", data: "" },
        { mime_type: "image/../x", data: "" },
      ],
    });
    expect(requested().attachments.map((one: any) => one.fileName)).toEqual(["image-1.webp", "b.png", "image-3.bin"]);
  });
  test.each([
    ["larger ones", [file(10_000_001)], []],
    ["more than five in all", Array(3).fill(file(1)), Array(3).fill(file(1))],
  ])("rejects %s", async (_name, attachments, images) => {
    api.respondWith({});
    expect(await post(RUNS, { prompt: "p", attachments, images })).toMatchObject({
      status: 400,
      body: { reason: "invalid_body" },
    });
    expect(api.calls).toEqual([]);
  });
});

describe("the owner of a new run", () => {
  test.each<[string, string, object, Record<string, string>, [string, string]]>([
    [
      "of two teams is the one in the header",
      "of_two_teams",
      {},
      { "x-service-team-uid": OTHER_TEAM },
      ["team", OTHER_TEAM],
    ],
    ["is the user when asked", "member", { team: false }, {}, ["user", USER]],
    ["is the user when a personal run has children", "run_of_user", {}, {}, ["user", USER]],
    ["is the user who is in no team", "of_no_team", {}, {}, ["user", USER]],
    ["is an agent's own team", "agent", { team: true }, {}, ["team", TEAM]],
  ])("%s", async (_name, key, body, headers, owner) => {
    api.respondWith(created);
    expect((await post(RUNS, { prompt: "p", ...body }, { key, headers })).status).toBe(200);
    expect([requested().ownerType, requested().ownerUid]).toEqual(owner);
  });
  test.each<[string, string, object, Record<string, string>, number, string]>([
    ["of two teams must be named", "of_two_teams", {}, {}, 400, "team_required"],
    ["cannot be a team when there is none", "of_no_team", { team: true }, {}, 400, "team_required"],
    ["cannot be an agent itself", "agent", { team: false }, {}, 400, "personal_run_of_agent"],
    [
      "cannot be a team the caller is not in",
      "member",
      {},
      { "x-service-team-uid": OTHER_TEAM },
      404,
      "team_not_found",
    ],
    ["cannot be a team that does not exist", "member", {}, { "x-service-team-uid": "nonsense" }, 404, "team_not_found"],
  ])("%s", async (_name, key, body, headers, status, reason) => {
    api.respondWith({});
    expect(await post(RUNS, { prompt: "p", ...body }, { key, headers })).toMatchObject({ status, body: { reason } });
    expect(api.calls).toEqual([]);
  });
});

describe("invalid creates", () => {
  const bodies = [
    { prompt: 1 },
    { prompt: null },
    [],
    null,
    "text",
    { title: "x".repeat(501) },
    { config: [] },
    { config: { model_id: 1 } },
    { config: { harness: { type: "warp9" } } },
    { config: { inference_providers: { aws: { disabled: "no" } } } },
    { on_behalf_of: "" },
    { config: { idle_timeout_minutes: 61 } },
    { config: { idle_timeout_minutes: 1.5 } },
    { config: { secrets: ["x"] } },
    { mode: "fast" },
    { team: "yes" },
    { interactive: 1 },
    { agent_identity_uid: 1 },
    { attachments: {} },
    { attachments: Array.from({ length: 6 }, () => ({ file_name: "a", mime_type: "b", data: "" })) },
    { attachments: [{ file_name: "", mime_type: "b", data: "" }] },
    { attachments: [{ file_name: "a", mime_type: "b", data: "no base64!" }] },
    { metadata: { "a b": "x" } },
    { metadata: { a: 1 } },
    { metadata: { a: "x".repeat(257) } },
    { metadata: Object.fromEntries(Array.from({ length: 21 }, (_one, index) => [`k${index}`, "v"])) },
    { prompt: "a\0b" },
  ];
  testRejectedBeforeUpstreams(
    () => api,
    400,
    bodies.map((body) => ["POST", RUNS, body] as const),
  );
});

testUpstreamErrors(
  () => api,
  () => post(RUNS, { prompt: "p" }),
  [
    "createRuns",
    upstreamError("not_found", "agent_not_found"),
    upstreamError("not_found", "environment_not_found"),
    upstreamError("not_found", "conversation_not_found"),
    upstreamError("invalid_argument", "parent_run_invalid"),
    upstreamError("invalid_argument", "depth_exceeded"),
    upstreamError("invalid_argument", "config_conflict"),
    upstreamError("invalid_argument", "model_unknown"),
    upstreamError("conflict", "idempotency_mismatch"),
    upstreamError("permission_denied", "not_authorized"),
  ],
);
// The run may have been created, so a request is only retryable with an idempotency key.
test.each(["internal", "unavailable"] as const)(
  "a create that fails as %s is repeated only under an Idempotency-Key",
  async (kind) => {
    const ask = (headers: Record<string, string>) => api.call("POST", RUNS, { body: { prompt: "p" }, headers });
    api.respondWith({ createRuns: upstreamError(kind, "it_broke") });
    expect((await ask({})).body).toMatchObject({ status: 500, reason: "it_broke", retryable: false });
    expect((await ask({ "idempotency-key": "k" })).body).toMatchObject({
      status: 500,
      reason: "it_broke",
      retryable: true,
    });
  },
);

describe("a run", () => {
  test("shows every published field, and omits absent ones", async () => {
    api.respondWith({ getRun: { run: aRun() } });
    const { body } = await api.call("GET", `${RUNS}/${RUN}`);
    expect(api.calls[0]).toMatchObject({ method: "getRun", request: { runUid: RUN } });
    const { session_link: link, ...rest } = body;
    expect(link).toMatch(new RegExp(`^https://mill.example/runs/${RUN}\\?view=`));
    expect(rest).toEqual({
      run_id: RUN,
      task_id: RUN,
      root_run_id: RUN,
      title: "Mend it",
      state: "QUEUED",
      prompt: "Mend the roof",
      created_at: CREATED,
      updated_at: UPDATED,
      started_at: null,
      finished_at: null,
      run_time: "PT0S",
      source: "API",
      execution_location: "REMOTE",
      scope: { type: "Team", uid: TEAM },
      metadata: {},
      conversation_id: CONVERSATION,
      is_sandbox_running: false,
      is_run_type_cancellable: true,
      debug_agent_available: false,
      artifacts: [],
      agent_config: { model_id: "scripted" },
      creator: { type: "user", uid: USER, display_name: "Ada", email: "ada@example.com" },
    });
  });
  test("shows what it has", async () => {
    const usage = {
      total_tokens: 12,
      inference_cost_usd: 0.5,
      model_token_usage: [
        { model_id: "scripted", total_tokens: 12, usage_type: "warp", tokens_by_category: { primary_agent: 12 } },
      ],
    };
    api.respondWith({
      getRun: {
        run: aRun({
          state: "FAILED",
          ownerType: "user",
          ownerUid: USER,
          parentRunUid: RUN,
          executorUid: AGENT,
          statusMessage: { message: "No.", errorCode: "environment_setup_failed", retryable: false },
          submittedPrompt: "Mend",
          startedAt: at(CREATED),
          finishedAt: at(UPDATED),
          runTimeMs: 3_723_500n,
          agentSkill: { name: "roofs" },
          factoryUid: "f",
          schedule: { scheduleId: "s", scheduleName: "n", cronSchedule: "* * * * *" },
          metadata: { ticket: "X-1" },
          sessionUid: "session",
          triggerUrl: "https://t.example",
          artifacts: [anArtifact()],
          requestUsage: usage,
        }),
      },
    });
    expect((await api.call("GET", `${RUNS}/${RUN}`)).body).toMatchObject({
      state: "FAILED",
      scope: { type: "User", uid: USER },
      parent_run_id: RUN,
      executor: { type: "service_account", display_name: "foreman" },
      status_message: { message: "No.", error_code: "environment_setup_failed", retryable: false },
      submitted_prompt: "Mend",
      started_at: CREATED,
      finished_at: UPDATED,
      run_time: "PT1H2M3.5S",
      agent_skill: { name: "roofs" },
      factory_uid: "f",
      schedule: { schedule_id: "s", schedule_name: "n", cron_schedule: "* * * * *" },
      metadata: { ticket: "X-1" },
      session_id: "session",
      trigger_url: "https://t.example",
      artifacts: [{ artifact_type: "FILE", created_at: CREATED, data: { filename: "out.txt" } }],
      request_usage: usage,
    });
  });
  test("has no profiles of deleted users", async () => {
    api.respondWith({ getRun: { run: aRun({ creatorUid: "gone", executorUid: "gone" }) } });
    const { body } = await api.call("GET", `${RUNS}/${RUN}`);
    expect([body.creator, body.executor]).toEqual([undefined, undefined]);
  });
  testUpstreamErrors(
    () => api,
    () => api.call("GET", `${RUNS}/${RUN}`),
    ["getRun", upstreamError("not_found", "run_not_found"), upstreamError("internal", "internal")],
  );
});

describe("the list of runs", () => {
  const page = { listRuns: { runs: [aRun()], nextPageToken: "next" } };
  test("is read with the defaults", async () => {
    api.respondWith(page);
    const { body } = await api.call("GET", RUNS);
    expect(body).toMatchObject({ runs: [{ run_id: RUN }], page_info: { has_next_page: true, next_cursor: "next" } });
    expect(api.calls[0]!.request).toMatchObject({
      teamUid: "",
      states: [],
      sortBy: "updated_at",
      sortOrder: "desc",
      pageSize: 20,
      pageToken: "",
      ancestorRunUid: "",
      factoryUids: [],
    });
  });
  test("is read with every filter", async () => {
    api.respondWith(page);
    const query = `state=QUEUED&state=ERROR&created_after=2026-11-20&created_before=${encodeURIComponent("2026-11-20T10:00:00+02:00")}&updated_after=2026-11-20T08:00:00Z&ancestor_run_id=${RUN}&factory_uid=a&factory_uid=b&name=nightly&model_id=gpt-5&creator=${USER}&source=API&source=CLI&environment_id=empty-environment&skill=s&schedule_id=sch&artifact_type=PLAN&q=leak&task_status=running&task_status=failed&executor=${AGENT}&execution_location=LOCAL&conversation_id=conv&sort_by=title&sort_order=asc&limit=500&cursor=c`;
    await api.call("GET", `${RUNS}?${query}`, { headers: { "x-service-team-uid": OTHER_TEAM } });
    const { createdAfter, createdBefore, updatedAfter, ...rest } = api.calls[0]!.request;
    expect(rest).toMatchObject({
      teamUid: OTHER_TEAM,
      states: ["QUEUED", "ERROR"],
      ancestorRunUid: RUN,
      factoryUids: ["a", "b"],
      sortBy: "title",
      sortOrder: "asc",
      pageSize: 500,
      pageToken: "c",
    });
    expect(rest).toMatchObject({
      name: "nightly",
      modelId: "gpt-5",
      creatorUid: USER,
      sources: ["API", "CLI"],
      environmentUid: "empty-environment",
      skillSpec: "s",
      scheduleUid: "sch",
      artifactType: "PLAN",
      search: "leak",
      taskStatuses: ["running", "failed"],
      executorUid: AGENT,
      executionLocation: "LOCAL",
      conversationUid: "conv",
      metadata: {},
    });
    expect([createdAfter, createdBefore, updatedAfter].map((time) => Number(time.seconds))).toEqual(
      ["2026-11-20T00:00:00Z", "2026-11-20T08:00:00Z", "2026-11-20T08:00:00Z"].map((time) => Date.parse(time) / 1000),
    );
  });
  test("filters by metadata unless a listed team has disabled it", async () => {
    api.respondWith(page);
    await api.call("GET", `${RUNS}?metadata[ticket_id]=7&metadata[a.b]=`, { headers: { "x-service-team-uid": TEAM } });
    expect(api.calls[0]!.request.metadata).toEqual({ ticket_id: "7", "a.b": "" });
    api.capabilities.metadataFilter = false;
    const [off, without] = [await api.call("GET", `${RUNS}?metadata[a]=1`), await api.call("GET", RUNS)];
    api.capabilities.metadataFilter = true;
    expect(without.status).toBe(200);
    expect(off).toMatchObject({
      status: 403,
      body: { error_code: "feature_not_available", reason: "metadata_filter_off", retryable: false },
    });
    expect(api.calls).toHaveLength(2);
  });
  test.each(["skill=a", "skill_spec=a", "skill=a&skill_spec=a"])(
    "accepts a skill filter by either name: %s",
    async (query) => {
      api.respondWith(page);
      await api.call("GET", `${RUNS}?${query}`);
      expect(api.calls[0]!.request).toMatchObject({ skillSpec: "a" });
    },
  );
  test("has no cursor on its last page", async () => {
    api.respondWith({ listRuns: { runs: [] } });
    expect((await api.call("GET", RUNS)).body).toEqual({ runs: [], page_info: { has_next_page: false } });
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [
      "state=queued",
      "state=",
      "created_after=soon",
      "created_before=2026-13-01",
      "updated_after=2026-02-30",
      "sort_by=uid",
      "sort_order=up",
      "limit=0",
      "limit=501",
      "limit=-1",
      "limit=x",
      "cursor=",
      "cursor=a&cursor=b",
      "artifact_type=plan",
      "task_status=done",
      "execution_location=local",
      "skill=a&skill_spec=b",
    ].map((query) => ["GET", `${RUNS}?${query}`] as const),
  );
  testUpstreamErrors(
    () => api,
    () => api.call("GET", `${RUNS}?cursor=c`),
    ["listRuns", upstreamError("invalid_argument", "invalid_cursor"), upstreamError("not_found", "run_not_found")],
  );
});

describe("cancel", () => {
  test.each([
    ["", false],
    ["?tree=true", true],
    ["?tree=false", false],
  ])("%s returns the id only", async (query, tree) => {
    api.respondWith({ cancelRun: { run: aRun() } });
    expect(await api.call("POST", `${RUNS}/${RUN}/cancel${query}`)).toMatchObject({ status: 200, body: RUN });
    expect(api.calls[0]!.request).toMatchObject({ runUid: RUN, tree, cause: "" });
  });
  testRejectedBeforeUpstreams(() => api, 400, [["POST", `${RUNS}/${RUN}/cancel?tree=1`]]);
  testUpstreamErrors(
    () => api,
    () => api.call("POST", `${RUNS}/${RUN}/cancel`),
    [
      "cancelRun",
      upstreamError("not_found", "run_not_found"),
      upstreamError("permission_denied", "not_authorized"),
      upstreamError("invalid_argument", "run_already_finished"),
      upstreamError("unsupported", "run_not_cancellable"),
      upstreamError("conflict", "run_pending", { retryable: true }),
    ],
  );
  test("of a pending run has Retry-After", async () => {
    api.respondWith({ cancelRun: upstreamError("conflict", "run_pending", { retryable: true }) });
    const { headers } = await api.call("POST", `${RUNS}/${RUN}/cancel`);
    expect([headers.get("x-should-retry"), headers.get("retry-after")]).toEqual(["true", "1"]);
  });
});

describe("a run by an external reference", () => {
  const path = "/api/v1/agent/run-by-external-reference";
  test("is found by the URL", async () => {
    api.respondWith({ findRunByReference: { runUid: RUN } });
    expect((await api.call("GET", `${path}?url=${encodeURIComponent("https://t.example/1?a=b")}`)).body).toEqual({
      run_id: RUN,
    });
    expect(api.calls[0]!.request.url).toBe("https://t.example/1?a=b");
  });
  testUpstreamErrors(
    () => api,
    () => api.call("GET", `${path}?url=x`),
    [
      "findRunByReference",
      upstreamError("not_found", "run_not_found"),
      upstreamError("invalid_argument", "url_invalid"),
    ],
  );
  testRejectedBeforeUpstreams(() => api, 400, [
    ["GET", path],
    ["GET", `${path}?url=`],
  ]);
});

describe("the usage of a harness", () => {
  test("is unavailable, not zero, if the harness publishes none", async () => {
    api.respondWith({ getHarnessUsage: { runUid: RUN, conversationUid: CONVERSATION } });
    expect((await api.call("GET", `${RUNS}/${RUN}/harness-usage`)).body).toEqual({
      available: false,
      run_id: RUN,
      conversation_id: CONVERSATION,
    });
  });
  test.each([
    ["in part", { reportedTokens: 200n, meteredTokens: 150n, unmeasuredCalls: 1n }, [200, 150, 1, 0.75]],
    ["beyond what it counted", { reportedTokens: 100n, meteredTokens: 150n }, [100, 150, 0, 1]],
    ["not at all", { reportedTokens: 200n }, [200, null, 0, 0]],
    ["while it has not counted itself", { meteredTokens: 150n }, [null, 150, 0, null]],
  ])("is reconciled with what was metered: %s", async (_, tokens, [reported, metered, unmeasured, coverage]) => {
    const usage = {
      ...{ harness: "CLAUDE_CODE", capturedAt: at(CREATED), executionId: 1n, ageSeconds: 3n },
      ...{ tokenStatus: "known", toolStatus: "known", counters: {}, ...tokens },
    };
    api.respondWith({ getHarnessUsage: { runUid: RUN, conversationUid: CONVERSATION, usage } });
    expect((await api.call("GET", `${RUNS}/${RUN}/harness-usage`)).body).toMatchObject({
      available: true,
      reconciliation: {
        reported_tokens: reported,
        metered_tokens: metered,
        unmeasured_call_count: unmeasured,
        coverage,
      },
    });
  });
  testUpstreamErrors(
    () => api,
    () => api.call("GET", `${RUNS}/${RUN}/harness-usage`),
    ["getHarnessUsage", upstreamError("not_found", "run_not_found")],
  );
});

const CONVERSATION_PATH = `/api/v1/agent/conversations/${CONVERSATION}`;

describe("a follow-up", () => {
  const path = `${RUNS}/${RUN}/followups`;
  test("references its files and their names", async () => {
    api.respondWith({ createFollowup: { outcome: "live_session", followupUid: "u1", runUid: RUN } });
    await post(path, { attachments: [{ attachment_id: "a1" }, { attachment_id: "a2", file_name: "plan.txt" }] });
    expect(api.calls[0]!.request).toMatchObject({
      runUid: RUN,
      message: "",
      attachmentUids: ["a1", "a2"],
      attachmentNames: { a2: "plan.txt" },
    });
  });
  test.each([
    ["live_session", "u1"],
    ["queued_prompt", undefined],
    ["handoff_execution", "u1"],
    ["queue_pending", "u1"],
  ])("returns %s with its id", async (outcome, followupUid) => {
    api.respondWith({ createFollowup: { outcome, followupUid, runUid: RUN } });
    expect((await post(path, { message: "go on" })).body).toEqual({ outcome, followup_id: followupUid ?? null });
    expect(api.calls[0]!.request).toMatchObject({
      runUid: RUN,
      conversationUid: "",
      message: "go on",
      mode: "",
      attachmentUids: [],
      idempotencyKey: "",
    });
  });
  test("passes on mode, attachments and Idempotency-Key", async () => {
    api.respondWith({ createFollowup: { outcome: "live_session", followupUid: "u1", runUid: RUN } });
    await post(
      path,
      { mode: "plan", attachments: [{ attachment_id: "a", file_name: "x" }] },
      { headers: { "idempotency-key": "k" } },
    );
    expect(api.calls[0]!.request).toMatchObject({
      message: "",
      mode: "plan",
      attachmentUids: ["a"],
      idempotencyKey: "k",
    });
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [
      { message: 1 },
      { mode: "x" },
      { attachments: [{}] },
      [],
      { attachments: Array.from({ length: 26 }, () => ({ attachment_id: "a" })) },
    ].map((body) => ["POST", path, body] as const),
  );
  testUpstreamErrors(
    () => api,
    () => post(path, { message: "x" }),
    [
      "createFollowup",
      upstreamError("not_found", "run_not_found"),
      upstreamError("permission_denied", "not_authorized"),
      upstreamError("invalid_argument", "message_empty"),
      upstreamError("unsupported", "unknown_attachment", { code: "unknown_attachment" }),
      upstreamError("unsupported", "attachment_not_uploaded", { code: "unknown_attachment" }),
      upstreamError("conflict", "idempotency_mismatch"),
      upstreamError("too_large", "attachment_too_large"),
      upstreamError("conflict", "attachment_changed"),
    ],
  );
});

describe.each([
  ["a run", `${RUNS}/${RUN}`, { runUid: RUN, conversationUid: "" }, {}, "run_not_found"],
  [
    "a conversation",
    CONVERSATION_PATH,
    { runUid: "", conversationUid: CONVERSATION },
    { run_id: RUN },
    "conversation_not_found",
  ],
])("files for %s", (_what, target, asked, named, absent) => {
  const path = `${target}/attachments/prepare`;
  const file = { filename: "a.png", mime_type: "image/png" };
  test("have an id and an upload URL each, in order", async () => {
    const uid = (n: number) => `0190c1a2-0000-7000-8000-00000000000${n}`;
    const prepared = (n: number) => ({
      uid: uid(n),
      uploadUrl: `https://files.example/${n}?sig=s`,
      uploadHeaders: { "content-type": "image/png" },
    });
    const shown = (n: number) => ({
      attachment_id: uid(n),
      upload_url: `https://files.example/${n}?sig=s`,
      upload_target: {
        url: `https://files.example/${n}?sig=s`,
        method: "PUT",
        headers: { "content-type": "image/png" },
      },
    });
    api.respondWith({ prepareAttachments: { runUid: RUN, attachments: [prepared(1), prepared(2)] } });
    expect(await post(path, { files: [file, file] })).toMatchObject({
      status: 200,
      body: { attachments: [shown(1), shown(2)], ...named },
    });
    expect(api.calls[0]!.request).toMatchObject({
      ...asked,
      files: [
        { fileName: "a.png", mimeType: "image/png" },
        { fileName: "a.png", mimeType: "image/png" },
      ],
    });
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [
      {},
      { files: [] },
      { files: Array.from({ length: 26 }, () => file) },
      { files: [{ filename: "a" }] },
      { files: [{ ...file, filename: "" }] },
      { files: [{ ...file, mime_type: "x".repeat(256) }] },
      [],
    ].map((body) => ["POST", path, body] as const),
  );
  testUpstreamErrors(
    () => api,
    () => post(path, { files: [file] }),
    [
      "prepareAttachments",
      upstreamError("not_found", absent),
      upstreamError("permission_denied", "not_authorized"),
      upstreamError("invalid_argument", "attachments_invalid"),
    ],
  );
});

describe("the states of follow-ups", () => {
  const path = `${RUNS}/${RUN}/followups`;
  test("are listed with their senders", async () => {
    const sent = { uid: "u1", text: "go on", authorType: "user", authorUid: USER, createdAt: at(CREATED) };
    api.respondWith({
      listFollowups: {
        followups: [
          { ...sent, state: "delivered", deliveredAt: at(UPDATED) },
          { ...sent, uid: "u2", authorUid: "x", state: "undeliverable", reason: "run_cancelled" },
        ],
        nextPageToken: "n",
      },
    });
    const { body } = await api.call("GET", `${path}?limit=2&cursor=c`);
    const shown = { followup_id: "u1", message: "go on", created_at: CREATED };
    expect(body).toEqual({
      followups: [
        { ...shown, state: "delivered", delivered_at: UPDATED, creator: expect.objectContaining({ uid: USER }) },
        { ...shown, followup_id: "u2", state: "undeliverable", reason: "run_cancelled" },
      ],
      page_info: { has_next_page: true, next_cursor: "n" },
    });
    expect(api.calls[0]!.request).toMatchObject({ runUid: RUN, pageSize: 2, pageToken: "c" });
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    ["limit=0", "limit=101", "cursor="].map((query) => ["GET", `${path}?${query}`] as const),
  );
  testUpstreamErrors(
    () => api,
    () => api.call("GET", path),
    ["listFollowups", upstreamError("not_found", "run_not_found"), upstreamError("invalid_argument", "invalid_cursor")],
  );
});

describe.each([
  ["a run", `${RUNS}/${RUN}`, { runUid: RUN, conversationUid: "" }, "run_not_found"],
  ["a conversation", CONVERSATION_PATH, { runUid: "", conversationUid: CONVERSATION }, "conversation_not_found"],
])("an interrupt of %s", (_what, path, target, absent) => {
  test("is accepted and returns the run's id", async () => {
    api.respondWith({ interruptRun: { runUid: RUN } });
    expect(await post(`${path}/interrupt`, undefined)).toMatchObject({ status: 202, body: { run_id: RUN } });
    expect(api.calls[0]!.request).toMatchObject(target);
  });
  testUpstreamErrors(
    () => api,
    () => post(`${path}/interrupt`, undefined),
    [
      "interruptRun",
      upstreamError("not_found", absent),
      upstreamError("permission_denied", "not_authorized"),
      upstreamError("invalid_argument", "run_already_finished"),
      upstreamError("unsupported", "operation_not_supported"),
      upstreamError("conflict", "run_not_started", { retryable: true }),
    ],
  );
});

describe("a conversation", () => {
  test("sends follow-ups to its newest run and returns its id", async () => {
    api.respondWith({ createFollowup: { outcome: "live_session", followupUid: "u1", runUid: RUN } });
    expect((await post(`${CONVERSATION_PATH}/followups`, { message: "go on" })).body).toEqual({
      outcome: "live_session",
      followup_id: "u1",
      run_id: RUN,
    });
    expect(api.calls[0]!.request).toMatchObject({ runUid: "", conversationUid: CONVERSATION });
  });
  test("is read as steps", async () => {
    api.respondWith({ getConversation: { conversationUid: CONVERSATION, steps: [] } });
    expect((await api.call("GET", CONVERSATION_PATH)).body).toEqual({ conversation_id: CONVERSATION, steps: [] });
    expect(api.calls[0]!.request).toMatchObject({ runUid: "", conversationUid: CONVERSATION });
  });
  testUpstreamErrors(
    () => api,
    () => api.call("GET", CONVERSATION_PATH),
    ["getConversation", upstreamError("not_found", "conversation_not_found")],
  );
  testUpstreamErrors(
    () => api,
    () => post(`${CONVERSATION_PATH}/followups`, { message: "x" }),
    [
      "createFollowup",
      upstreamError("not_found", "conversation_not_found"),
      upstreamError("unsupported", "unknown_attachment", { code: "unknown_attachment" }),
    ],
  );
  testRejectedBeforeUpstreams(() => api, 404, [
    ["GET", "/api/v1/agent/conversations/x"],
    ["POST", "/api/v1/agent/conversations/x/interrupt"],
    ["POST", "/api/v1/agent/conversations/x/followups", { message: "x" }],
  ]);
});

describe("the queue", () => {
  test("returns position and reason, or neither", async () => {
    api.respondWith({
      getQueueStatus: { state: "QUEUED", position: 3, reason: "workers_busy", message: "All workers are busy." },
    });
    expect((await api.call("GET", `${RUNS}/${RUN}/queue`)).body).toEqual({
      state: "QUEUED",
      owner_position: 3,
      reason: "workers_busy",
      message: "All workers are busy.",
      budgets: [],
    });
    api.respondWith({ getQueueStatus: { state: "INPROGRESS", reason: "none", message: "" } });
    expect((await api.call("GET", `${RUNS}/${RUN}/queue`)).body).toEqual({
      state: "INPROGRESS",
      reason: "none",
      message: "",
      budgets: [],
    });
  });
  testUpstreamErrors(
    () => api,
    () => api.call("GET", `${RUNS}/${RUN}/queue`),
    ["getQueueStatus", upstreamError("not_found", "run_not_found")],
  );
});

describe("a malformed run id", () => {
  testRejectedBeforeUpstreams(() => api, 404, [
    ["GET", `${RUNS}/x`],
    ["POST", `${RUNS}/${RUN}0/cancel`],
    ["POST", `${RUNS}/%00/followups`, { message: "x" }],
    ["GET", `${RUNS}/../queue/queue`],
  ]);
});
