import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import type { Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { TestWorker } from "./support/test-worker.ts";
import { eventsOf, runOf } from "./support/runs.ts";
import { shown, States } from "./support/states.ts";
import { aTeam, teamOf } from "./support/resources.ts";

/**
 * The rows of API specification §3 "Run", the rules for conversations in §4 and the errors of §7 for both, tested
 * through the public API. Further effects of each row (directives, tokens, prompts, fates) are tested in
 * states.test.ts, results of runs in journey.test.ts and conversations.test.ts.
 */
let platform: Deployment;
let api: Client;
let worker: TestWorker;
let states: States;
let viewer: Client;
let stranger: Client;

beforeAll(async () => {
  platform = await startPlatform({ workers: 0, timeScale: 1 });
  api = await connect(platform);
  worker = await TestWorker.register(api, "by-hand", ["oz", "claude"]);
  states = new States(api, worker);
  stranger = await aTeam(api, "Others");
  const team = await teamOf(api);
  viewer = api.as(
    (await api.post(`/team/${team}/members`, { email: `viewer-${randomUUID()}@example.com`, role: "viewer" })).api_key,
  );
});
afterAll(() => platform?.remove());
afterEach(() => states.clear());

const FINISHED = [400, { reason: "run_already_finished", error_code: "invalid_request", retryable: false }] as const;
const PENDING = [409, { reason: "run_pending", error_code: "conflict", retryable: true }] as const;
const NOT_STARTED = [409, { reason: "run_not_started", error_code: "conflict", retryable: true }] as const;
const NOT_CANCELLABLE = [
  422,
  { reason: "run_not_cancellable", error_code: "operation_not_supported", retryable: false },
] as const;
const NOT_INTERRUPTIBLE = [
  422,
  { reason: "operation_not_supported", error_code: "operation_not_supported", retryable: false },
] as const;
const outcome = (name: string) => ({
  outcome: name,
  followup_id: name === "queued_prompt" ? null : expect.any(String),
});

/**
 * A request, the state of the run, the status and body of the response, and the state of the run afterwards if it
 * differs.
 */
type Row = readonly [
  asked: "cancel" | "interrupt" | "followups",
  of: string,
  status: number,
  body: unknown,
  then?: string,
];

const ROWS: readonly Row[] = [
  ...["QUEUED", "CLAIMED", "INPROGRESS", "waiting", "third-party"].map(
    (state) => ["cancel", state, 200, expect.any(String), "CANCELLED"] as const,
  ),
  ["cancel", "PENDING", ...PENDING],
  ...["SUCCEEDED", "FAILED", "ERROR", "BLOCKED", "CANCELLED"].map((state) => ["cancel", state, ...FINISHED] as const),
  ["cancel", "LOCAL", ...NOT_CANCELLABLE],

  ...["INPROGRESS", "waiting"].map((state) => ["interrupt", state, 202, { run_id: expect.any(String) }] as const),
  ...["QUEUED", "PENDING", "CLAIMED"].map((state) => ["interrupt", state, ...NOT_STARTED] as const),
  ...["SUCCEEDED", "FAILED", "ERROR", "BLOCKED", "CANCELLED"].map(
    (state) => ["interrupt", state, ...FINISHED] as const,
  ),
  ["interrupt", "third-party", ...NOT_INTERRUPTIBLE],
  ["interrupt", "LOCAL", ...NOT_INTERRUPTIBLE],

  ["followups", "QUEUED", 200, outcome("queued_prompt")],
  ["followups", "PENDING", 200, outcome("queued_prompt")],
  ["followups", "CLAIMED", 200, outcome("queue_pending")],
  ["followups", "INPROGRESS", 200, outcome("live_session")],
  ["followups", "third-party", 200, outcome("live_session")],
  ["followups", "LOCAL", 200, outcome("live_session")],
  ["followups", "waiting", 200, outcome("queue_pending"), "QUEUED"],
  ...["SUCCEEDED", "FAILED", "ERROR", "BLOCKED", "CANCELLED"].map(
    (state) => ["followups", state, 200, outcome("handoff_execution"), "QUEUED"] as const,
  ),
];

/** The same requests for the run and for its conversation, which has no cancel operation. */
const ADDRESSED: (readonly ["runs" | "conversations", ...Row])[] = ROWS.flatMap((row) =>
  row[0] === "cancel" ? [["runs", ...row] as const] : [["runs", ...row] as const, ["conversations", ...row] as const],
);

test.each(ADDRESSED)(
  "%s: %s of a run that is %s is a %d",
  async (address, asked, of, status, body, then = shown(of)) => {
    const { runId } = await states.createRunIn(of);
    const { conversation_id: conversation } = await runOf(api, runId);
    const before = await eventsOf(api, runId);
    const answer = await api.call(
      "POST",
      `/agent/${address}/${address === "runs" ? runId : conversation}/${asked}`,
      asked === "followups" ? { body: { message: "And then?" } } : {},
    );
    expect(answer).toMatchObject({ status, body });
    expect((await runOf(api, runId)).state).toBe(then);
    if (status < 400) return;
    expect(await eventsOf(api, runId)).toEqual(before);
    expect([answer.headers.get("x-should-retry") ?? "false", answer.headers.get("retry-after")]).toEqual(
      status === 409 ? ["true", "1"] : ["false", null],
    );
  },
);

describe("reads of a run in every state", () => {
  test.each([
    "QUEUED",
    "PENDING",
    "CLAIMED",
    "INPROGRESS",
    "waiting",
    "SUCCEEDED",
    "FAILED",
    "ERROR",
    "BLOCKED",
    "CANCELLED",
    "LOCAL",
  ])("%s", async (state) => {
    const { runId } = await states.createRunIn(state);
    const { conversation_id: conversation } = await runOf(api, runId);
    const read = await api.get(`/agent/runs/${runId}/conversation`);
    expect([read, await api.get(`/agent/conversations/${conversation}`)]).toEqual([
      { conversation_id: conversation, steps: expect.any(Array) },
      read,
    ]);
    expect(read.steps.length > 0).toBe(!["QUEUED", "PENDING", "CLAIMED"].includes(state));
    expect((await api.get(`/agent/runs/${runId}/timeline`)).events[0]).toMatchObject({
      event_type: "oz_run_created",
      run_id: runId,
    });
    expect(await api.get(`/agent/runs/${runId}/harness-usage`)).toEqual({
      available: false,
      run_id: runId,
      conversation_id: conversation,
    }); // Unknown usage is not reported as zero.
  });
});

const READS = [
  "runs/{run}",
  "runs/{run}/timeline",
  "runs/{run}/conversation",
  "runs/{run}/transcript",
  "runs/{run}/harness-usage",
  "conversations/{conversation}",
  "conversations/{conversation}/transcript",
  "conversations/{conversation}/block-snapshot",
].map((path) => ["GET", path] as const);
const WRITES = [
  "runs/{run}/cancel",
  "runs/{run}/interrupt",
  "runs/{run}/followups",
  "runs/{run}/attachments/prepare",
  "conversations/{conversation}/interrupt",
  "conversations/{conversation}/followups",
  "conversations/{conversation}/attachments/prepare",
].map((path) => ["POST", path] as const);
const bodyOf = (path: string): object =>
  path.endsWith("prepare")
    ? { body: { files: [{ filename: "a.txt", mime_type: "text/plain" }] } }
    : path.endsWith("followups")
      ? { body: { message: "x" } }
      : {};

describe.each([...READS, ...WRITES])("%s %s", (method, path) => {
  const at = ({ run, conversation }: { run: string; conversation: string }) =>
    `/agent/${path.replace("{run}", run).replace("{conversation}", conversation)}`;
  const ask = (who: Client, ids: { run: string; conversation: string }, more: object = {}) =>
    who.call(method, at(ids), { ...bodyOf(path), ...more });
  const problem = ({ status, body }: { status: number; body: any }) => [
    status,
    body.error_code,
    body.reason,
    body.retryable,
    body.detail,
  ];

  test("is 401 without a key, for what exists and what does not; 404 for another team, for an unknown id and for a malformed one", async () => {
    const { runId } = await states.createRunIn("SUCCEEDED");
    const ids = { run: runId, conversation: (await runOf(api, runId)).conversation_id };
    const unknown = { run: randomUUID(), conversation: randomUUID() };
    const before = [await runOf(api, runId), await eventsOf(api, runId)];
    for (const some of [ids, unknown])
      expect(await ask(api, some, { key: null })).toMatchObject({
        status: 401,
        body: { error_code: "authentication_required", retryable: false },
      });
    const absent = problem(await ask(api, unknown));
    expect(absent.slice(0, 3)).toEqual([
      404,
      "resource_not_found",
      path.startsWith("runs") ? "run_not_found" : "conversation_not_found",
    ]);
    expect(problem(await ask(stranger, ids))).toEqual(absent);
    expect(problem(await ask(api, { run: "x", conversation: "x" }))).toEqual(absent);
    expect([await runOf(api, runId), await eventsOf(api, runId)]).toEqual(before);
  });
});

test.each(WRITES)("%s %s returns 403 without run.manage, and changes nothing", async (method, path) => {
  const { runId } = await states.createRunIn("INPROGRESS");
  const { conversation_id: conversation } = await runOf(api, runId);
  const before = await eventsOf(api, runId);
  expect(
    await viewer.call(
      method,
      `/agent/${path.replace("{run}", runId).replace("{conversation}", conversation)}`,
      bodyOf(path),
    ),
  ).toMatchObject({ status: 403, body: { error_code: "not_authorized", retryable: false } });
  expect([await eventsOf(api, runId), (await runOf(api, runId)).state]).toEqual([before, "INPROGRESS"]);
});

test.each(["codex", "gemini", "opencode"])(
  "a run of %s is accepted with its configuration, and waits if no worker offers it: the queue states so",
  async (type) => {
    const config = {
      harness: {
        type,
        model_id: type === "opencode" ? "anthropic/claude-next" : "some-model",
        reasoning_level: "high",
      },
      harness_auth_secrets: { [`${type}_auth_secret_name`]: "KEY" },
    };
    const { run_id: runId } = await api.post("/agent/runs", { prompt: "p", config });
    expect((await runOf(api, runId)).agent_config).toMatchObject(config);
    await worker.reportConnected();
    expect(await api.get(`/agent/runs/${runId}/queue`)).toMatchObject({
      state: "QUEUED",
      reason: "no_matching_worker",
      message: `No connected worker offers the harness "${type}".`,
    });
    await api.post(`/agent/runs/${runId}/cancel`);
  },
);

describe("an invalid request", () => {
  const manyPairs = Array.from({ length: 6 }, (_none, n) => `metadata[k${n}]=v`).join("&");
  test.each<[string, string, unknown, number, string]>([
    ["POST", "/agent/runs", {}, 400, "prompt_required"],
    ["POST", "/agent/runs", { prompt: "p", mode: "fast" }, 400, "invalid_body"],
    ["POST", "/agent/runs", { prompt: "p", config: { skill_spec: "a/b:c", skills: ["d"] } }, 400, "config_conflict"],
    ["POST", "/agent/runs", { prompt: "p", config: { harness: { type: "vim" } } }, 400, "invalid_body"],
    [
      "POST",
      "/agent/runs",
      { prompt: "p", config: { harness: { type: "opencode", model_id: "nope" } } },
      400,
      "model_unknown",
    ],
    ["POST", "/agent/runs", { prompt: "p", parent_run_id: randomUUID() }, 400, "parent_run_invalid"],
    ["POST", "/agent/runs", { prompt: "p", agent_identity_uid: randomUUID() }, 404, "agent_not_found"],
    ["POST", "/agent/runs", { prompt: "p", conversation_id: randomUUID() }, 404, "conversation_not_found"],
    ["POST", "/agent/runs", { prompt: "p", config: { environment_id: "A".repeat(22) } }, 404, "environment_not_found"],
    ["GET", "/agent/runs?state=DONE", undefined, 400, "invalid_parameter"],
    ["GET", "/agent/runs?task_status=done", undefined, 400, "invalid_parameter"],
    ["GET", "/agent/runs?sort_by=size", undefined, 400, "invalid_parameter"],
    ["GET", "/agent/runs?sort_order=up", undefined, 400, "invalid_parameter"],
    ["GET", "/agent/runs?limit=0", undefined, 400, "invalid_parameter"],
    ["GET", "/agent/runs?limit=501", undefined, 400, "invalid_parameter"],
    ["GET", "/agent/runs?cursor=forged", undefined, 400, "invalid_cursor"],
    ["GET", "/agent/runs?created_after=yesterday", undefined, 400, "invalid_parameter"],
    ["GET", "/agent/runs?execution_location=MOON", undefined, 400, "invalid_parameter"],
    ["GET", `/agent/runs?${manyPairs}`, undefined, 400, "too_many_metadata_pairs"],
    ["GET", `/agent/runs?ancestor_run_id=${randomUUID()}`, undefined, 404, "run_not_found"],
    ["GET", "/agent/run-by-external-reference", undefined, 400, "invalid_parameter"],
    ["GET", "/agent/run-by-external-reference?url=https://tracker.example/none", undefined, 404, "run_not_found"],
  ])("%s %s with %j is a %d", async (method, path, body, status, reason) => {
    const answer = await api.call(method, path, body === undefined ? {} : { body });
    expect(answer).toMatchObject({
      status,
      body: { error_code: status === 404 ? "resource_not_found" : "invalid_request", retryable: false, reason },
    });
  });

  test("runs cannot be filtered by metadata if the team's capability is off: feature_not_available", async () => {
    const team = await teamOf(stranger);
    await stranger.patch(`/team/${team}`, { capabilities: { metadata_filter: false } });
    expect(await stranger.call("GET", "/agent/runs?metadata[ticket]=X-1")).toMatchObject({
      status: 403,
      body: { error_code: "feature_not_available", retryable: false },
    });
    expect((await stranger.call("GET", "/agent/runs")).status).toBe(200);
  });

  test.each(["runs", "conversations"])(
    "%s: a follow-up without a message is a 400, with a file that was not prepared a 422, and neither reaches the run",
    async (address) => {
      const { runId } = await states.createRunIn("INPROGRESS");
      const path = `/agent/${address}/${address === "runs" ? runId : (await runOf(api, runId)).conversation_id}/followups`;
      const before = await eventsOf(api, runId);
      expect(await api.call("POST", path, { body: { message: "" } })).toMatchObject({
        status: 400,
        body: { reason: "message_empty" },
      });
      expect(await api.call("POST", path, { body: { message: "x", mode: "fast" } })).toMatchObject({
        status: 400,
        body: { error_code: "invalid_request" },
      });
      expect(
        await api.call("POST", path, { body: { message: "x", attachments: [{ attachment_id: randomUUID() }] } }),
      ).toMatchObject({ status: 422, body: { error_code: "unknown_attachment", retryable: false } });
      expect([await eventsOf(api, runId), (await api.get(`/agent/runs/${runId}/followups`)).followups]).toEqual([
        before,
        [],
      ]);
    },
  );
});
