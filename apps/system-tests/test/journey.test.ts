/* oxlint-disable jest/no-standalone-expect -- onStandalone and withoutLosses declare tests */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import type { Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { isStandalone, losesWorkers, startPlatform } from "./support/deployment.ts";
import {
  ended,
  eventsOf,
  waitForState,
  runOf,
  script,
  spawn,
  startRun,
  succeeded,
  effectiveEventsOf,
} from "./support/runs.ts";
import { aFactory, definitionFiles } from "./support/resources.ts";

/** The smallest valid PNG. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==";
const FIRST = script(
  "say: I begin.",
  'write: {path: notes/a.txt, content: "one\\ntwo\\nthree\\n"}',
  "read: {path: notes/a.txt, start_line: 2, end_line: 2}",
  'edit: {path: notes/a.txt, old: "two", new: "2"}',
  "search: {pattern: three, path: notes}",
  "list: notes",
  "shell: cat notes/a.txt",
  `shell: echo ${PNG} | base64 -d > dot.png`,
  "shell: {command: exit 3, allow_failure: true}",
  "plan: {title: The plan, markdown: '# Steps'}",
  "artifact: {file: notes/a.txt, title: Notes, public: true}",
  "artifact: {file: notes/a.txt}",
  "screenshot: {file: dot.png, description: A dot}",
  "external_reference: {url: 'HTTPS://Tracker.example:443/T-1#top', reference_type: ticket, title: T-1}",
  spawn(script("say: I am the child.", "write: {path: c.txt, content: c}", "artifact: c.txt"), "helper"),
  spawn(script("say: I am the other child.")),
  "wait: all",
  "stage: REVIEW",
  "ask: Which name?",
  "say: Thank you.",
  "finish: All is done.",
);

/** Tests that need a feature of a single process. */
const onStandalone = isStandalone() ? test : test.skip;
/** Tests of steps that happen once, unless a lost worker repeats them. */
const withoutLosses = losesWorkers() ? test.skip : test;

let platform: Deployment;
let api: Client;
let factory: string;
let runId: string;
let blocked: any;

beforeAll(async () => {
  platform = await startPlatform();
  api = await connect(platform);
  factory = await aFactory(api, definitionFiles("No script here."));
  runId = (
    await api.post(`/factory/${factory}/runs`, { prompt: FIRST, title: "Everything", ticket_ref: "tracker:T-1" })
  ).run_id;
  blocked = await waitForState(api, runId, "BLOCKED", "FAILED", "ERROR", "SUCCEEDED");
});
afterAll(() => platform?.remove());

const task = () => api.get(`/factory/${factory}/task-by-run?run_id=${runId}`);
const children = async (): Promise<any[]> =>
  (await api.get(`/agent/runs?ancestor_run_id=${runId}&sort_by=created_at&sort_order=asc`)).runs;
const anonymously = (path: string) => api.call("GET", path, { key: null });
/** Returns the actions of a conversation with their results, including nested ones. */
const actionsOf = (steps: any[]): any[] =>
  steps.flatMap((step) => [
    ...step.messages.flatMap((message: any) => message.content).filter((block: any) => /^action/.test(block.type)),
    ...actionsOf(step.steps),
  ]);

describe("a run that takes every step of a script", () => {
  test("asks its question and blocks", () =>
    expect([blocked.state, blocked.status_message.message]).toEqual([
      "BLOCKED",
      expect.stringContaining("Which name?"),
    ]));

  test("creates a plan, files, a screenshot and a reference", () => {
    const shown = blocked.artifacts
      .map(({ artifact_type: type, data }: any) => [type, data.title ?? data.description ?? data.filename])
      .toSorted();
    expect(shown).toEqual([
      ["EXTERNAL_REFERENCE", "T-1"],
      ["FILE", "Notes"],
      ["FILE", "a.txt"],
      ["PLAN", "The plan"],
      ["SCREENSHOT", "A dot"],
    ]);
    expect(blocked.artifacts.find((one: any) => one.artifact_type === "EXTERNAL_REFERENCE").data).toMatchObject({
      url: "https://tracker.example/T-1",
      reference_type: "ticket",
    });
  });
  test("its public file can be read by anyone, its private one by the team", async () => {
    const [open, hidden] = ["Notes", undefined].map(
      (title) =>
        blocked.artifacts.find(({ artifact_type: type, data }: any) => type === "FILE" && data.title === title).data
          .artifact_uid,
    );
    const shown = await anonymously(`/agent/artifacts/${open}`);
    expect([shown.status, shown.body.data.filename, shown.body.data.filepath]).toEqual([200, "a.txt", undefined]);
    const download = await anonymously(`/agent/artifacts/${open}/download`);
    expect((await api.fetch(download.headers.get("location")!)).text).toBe("one\n2\nthree\n");
    expect((await anonymously(`/agent/artifacts/${hidden}`)).status).toBe(401);
    expect((await anonymously(`/agent/artifacts/${hidden}/download`)).status).toBe(401);
    expect((await api.get(`/agent/artifacts/${hidden}`)).data).toMatchObject({
      filename: "a.txt",
      filepath: "notes/a.txt",
      size_bytes: 12,
      content_type: "text/plain",
    });
    await api.patch(`/agent/artifacts/${hidden}`, { public: true });
    expect((await anonymously(`/agent/artifacts/${hidden}`)).status).toBe(200);
  });
  test("its plan is returned inline, its screenshot as an image", async () => {
    const uidOf = (type: string) => blocked.artifacts.find((one: any) => one.artifact_type === type).data.artifact_uid;
    expect((await api.get(`/agent/artifacts/${uidOf("PLAN")}`)).data).toMatchObject({
      content: "# Steps",
      content_type: "text/markdown",
      title: "The plan",
    });
    const { data } = await api.get(`/agent/artifacts/${uidOf("SCREENSHOT")}`);
    const image = await api.fetch(data.download_url);
    expect([image.headers.get("content-type"), image.bytes.toString("base64")]).toEqual(["image/png", PNG]);
  });
  withoutLosses("every action is in the conversation with its result", async () => {
    const { conversation_id: conversation, steps } = await api.get(`/agent/runs/${runId}/conversation`);
    expect(conversation).toBe(blocked.conversation_id);
    const actions = actionsOf(steps.map((step: any) => ({ ...step, steps: [] })));
    expect(actions.filter(({ type }) => type === "action").map(({ name }) => name)).toEqual([
      "edit_files",
      "read_files",
      "edit_files",
      "grep",
      "file_glob",
      "run_command",
      "run_command",
      "run_command",
      "create_document",
      "report_artifact",
      "report_artifact",
      "use_computer",
      "report_artifact",
      "spawn_run",
      "spawn_run",
      "wait_for_runs",
      "set_task_stage",
      "ask_user",
    ]);
    const results = new Map(
      actions.filter(({ type }) => type === "action_result").map((block) => [block.action_id, block]),
    );
    for (const { id, name, category } of actions.filter(({ type }) => type === "action"))
      expect(results.get(id)).toMatchObject({ name, category, state: "completed" });
    const ofChildren = actionsOf(steps).filter((block) => !actions.includes(block));
    expect(ofChildren.filter(({ type }) => type === "action").map(({ name }) => name)).toEqual([
      "edit_files",
      "report_artifact",
    ]);
    const outputOf = (name: string) =>
      actions.filter((block) => block.type === "action_result" && block.name === name).map(({ output }) => output);
    expect(outputOf("run_command")).toMatchObject([
      { exit_code: 0, output: "one\n2\nthree\n" },
      { exit_code: 0 },
      { exit_code: 3 },
    ]);
    expect(outputOf("edit_files")).toMatchObject([
      { files: [{ path: "notes/a.txt", lines_added: 3, lines_removed: 0 }] },
      { files: [{ path: "notes/a.txt", lines_added: 1, lines_removed: 1 }] },
    ]);
  });
  test("its children ran as agents of its factory, ended by themselves, and woke it once", async () => {
    const [child, other, ...more] = await children();
    expect(more).toEqual([]);
    expect(child).toMatchObject({
      state: "SUCCEEDED",
      parent_run_id: runId,
      root_run_id: runId,
      factory_uid: factory,
      executor: { display_name: "helper" },
      source: "ORCHESTRATION",
    });
    // A child without a named agent is executed by the parent's agent, with the same configuration.
    expect(other).toMatchObject({
      state: "SUCCEEDED",
      parent_run_id: runId,
      factory_uid: factory,
      executor: { display_name: "foreman" },
      agent_config: { name: "foreman" },
    });
    const kinds = (await eventsOf(api, runId)).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === "child_finished")).toHaveLength(2);
    // It does not wait if it lost its worker and both had ended before it continued.
    expect(kinds.filter((kind) => kind === "run_waiting").length).toBeLessThanOrEqual(1);
  });
  test("its task has the ticket, the stage it set and the outputs of the whole tree, without plans", async () => {
    const { outputs, ...rest } = await task();
    expect(rest).toMatchObject({
      title: "Everything",
      stage: "REVIEW",
      conversation_id: blocked.conversation_id,
      run_id: runId,
    });
    expect(outputs.map((one: any) => one.data.filename ?? one.artifact_type).toSorted()).toEqual([
      "EXTERNAL_REFERENCE",
      "SCREENSHOT",
      "a.txt",
      "a.txt",
      "c.txt",
    ]);
    expect(blocked.metadata).toMatchObject({ ticket_source: "tracker", ticket_id: "T-1" });
  });
});

describe("its answer", () => {
  test("continues the same run once, after the question", async () => {
    const [first, again] = [
      await answer("An answer without a script.", `${runId}-1`),
      await answer("An answer without a script.", `${runId}-1`),
    ];
    expect(first).toEqual({ outcome: "handoff_execution", followup_id: expect.any(String) });
    expect(again).toEqual(first);
    const run = await succeeded(api, runId);
    const texts = (await effectiveEventsOf(api, runId))
      .filter(({ kind }) => kind === "model_step")
      .map(({ payload }) => payload.text)
      .filter(Boolean);
    expect(texts).toEqual(["I begin.", "Thank you."]);
    expect(
      new Set(
        (await api.get(`/agent/runs/${runId}/timeline`)).events.map((one: any) => one.execution_id).filter(Boolean),
      ).size,
    ).toBeGreaterThan(1);
    expect(run.finished_at).not.toBeNull();
  });
  const answer = (message: string, key: string) =>
    api.post(`/agent/runs/${runId}/followups`, { message }, { headers: { "idempotency-key": key } });
});

describe("its history", () => {
  test("has events without a gap, the same in pages and as a stream, from any position", async () => {
    const pages = await eventsOf(api, runId, 7);
    expect(pages.map(({ seq }) => seq)).toEqual(pages.map((_event, index) => index + 1));
    for (const after of [0, 5]) {
      const { body } = await api.call("GET", `/agent/runs/${runId}/events`, {
        headers: { accept: "text/event-stream", "last-event-id": String(after) },
      });
      const blocks = (body as string).split("\n\n").filter((block) => block !== "" && !block.startsWith(":"));
      expect(blocks.at(-1)).toBe("event: end\ndata: {}");
      expect(blocks.slice(0, -1).map((block) => JSON.parse(/^data: (.*)$/m.exec(block)![1]!))).toEqual(
        pages.slice(after),
      );
      expect(blocks.slice(0, -1).map((block) => Number(/^id: (.*)$/m.exec(block)![1]))).toEqual(
        pages.slice(after).map(({ seq }) => seq),
      );
    }
  });
  test("has a timeline of published names, in order", async () => {
    const { events } = await api.get(`/agent/runs/${runId}/timeline`);
    const types = events.map((one: any) => one.event_type);
    expect(types.slice(0, 5)).toEqual([
      "oz_run_created",
      "oz_run_claimed",
      "worker_container_ready",
      "shared_session_started",
      "agent_started",
    ]);
    expect(types.filter((type: string) => /_(done|blocked)$/.test(type))).toEqual(["oz_run_blocked", "oz_run_done"]);
    expect(new Set(events.map((one: any) => one.event_uuid)).size).toBe(events.length);
  });
  test("has a transcript of JSON lines behind a redirect", async () => {
    const { status, headers } = await api.call("GET", `/agent/runs/${runId}/transcript`);
    const lines = (await api.fetch(headers.get("location")!)).text.trim().split("\n");
    expect(status).toBe(302);
    expect(lines.map((line) => JSON.parse(line)).length).toBeGreaterThan(20);
    expect(lines.join("\n")).toContain("Thank you.");
  });
  test("has usage of zero", async () => {
    const { request_usage: usage } = await api.get(`/agent/runs/${runId}`);
    expect(usage).toMatchObject({ total_tokens: 0, inference_cost_usd: 0 });
  });
  test("is readable without a key only with the token of its link", async () => {
    const { session_link: link, title } = await api.get(`/agent/runs/${runId}`);
    const { origin, pathname, searchParams } = new URL(link);
    expect(pathname).toBe(`/runs/${runId}`);
    const read = (headers: Record<string, string>) => api.fetch(`${origin}/api/v1/agent/runs/${runId}`, { headers });
    const seen = await read({ "X-Millwright-View": searchParams.get("view")! });
    expect([seen.status, JSON.parse(seen.text).title]).toEqual([200, title]);
    expect((await read({})).status).toBe(401);
  });
});

test("a script that fails ends its run as FAILED, with the reason", async () => {
  const run = await waitForState(api, await startRun(api, script("fail: no access")), "FAILED");
  expect(run.status_message).toMatchObject({ message: "no access", retryable: false });
});

test("without a script or a model a run blocks and states how to continue; a script as the answer continues it", async () => {
  const id = await startRun(api, "Please do something clever.");
  expect((await waitForState(api, id, "BLOCKED")).status_message.message).toContain("No AI model is configured");
  await api.post(`/agent/runs/${id}/followups`, { message: script("say: Now I know.") });
  await succeeded(api, id);
});

onStandalone("the address of the docs that the platform prints opens the reference", async () => {
  const [, url] = /docs +(\S+)/.exec(platform.output()) ?? [];
  const page = await api.fetch(url!);
  expect([url, page.status, page.text]).toEqual([
    `${platform.url}/docs`,
    200,
    expect.stringContaining("API reference"),
  ]);
});

test("a child that fails fails the script that waits for it", async () => {
  const run = await waitForState(
    api,
    await startRun(api, script(spawn(script("fail: on purpose")), "wait: all")),
    "FAILED",
  );
  const [child] = (await api.get(`/agent/runs?ancestor_run_id=${run.run_id}`)).runs;
  expect(child).toMatchObject({ state: "FAILED", status_message: { message: "on purpose" } });
  expect(run.status_message.message).toContain(child.run_id);
});

test("wait: any continues with the first child's end", async () => {
  const id = await startRun(
    api,
    script(spawn(script("say: quick")), spawn(script("shell: sleep 600")), "wait: any", "say: on"),
  );
  await succeeded(api, id);
  const started = (await api.get(`/agent/runs?ancestor_run_id=${id}`)).runs;
  expect(started).toHaveLength(2);
  const endless = started.find((child: any) => child.state !== "SUCCEEDED");
  await api.post(`/agent/runs/${endless.run_id}/cancel`);
  expect((await ended(api, endless.run_id)).state).toBe("CANCELLED");
});

onStandalone(
  "an interrupt in the middle of a tool ends the tool and the turn; the same execution continues with the next message",
  async () => {
    const id = await startRun(api, script("shell: sleep 600", "say: never"));
    const kinds = async () => (await eventsOf(api, id)).map(({ kind }: any) => kind);
    await eventually(async () => (await kinds()).includes("tool_start"));
    expect(await api.call("POST", `/agent/runs/${id}/interrupt`)).toMatchObject({ status: 202, body: { run_id: id } });
    const turnEnd = await eventually(
      async () => (await eventsOf(api, id)).find(({ kind }: any) => kind === "turn_end") ?? false,
    );
    expect(turnEnd.payload).toEqual({ outcome: "interrupted" });
    expect((await eventsOf(api, id)).find(({ kind }: any) => kind === "tool_end")?.payload.state).toBe("interrupted");
    expect((await runOf(api, id)).state).toBe("INPROGRESS");
    expect(await api.post(`/agent/runs/${id}/followups`, { message: script("say: On.") })).toMatchObject({
      outcome: "live_session",
    });
    await succeeded(api, id);
    expect(
      new Set((await eventsOf(api, id)).map(({ execution_id: execution }: any) => execution).filter(Boolean)).size,
    ).toBe(1);
    expect((await api.get(`/agent/runs/${id}/followups`)).followups).toMatchObject([{ state: "delivered" }]);
  },
);

test("a dispatch repeated with its key returns the same run and one task; another body is a conflict", async () => {
  const dispatch = (prompt: string) =>
    api.call("POST", `/factory/${factory}/runs`, { body: { prompt }, headers: { "idempotency-key": `${runId}-2` } });
  const [first, again, other] = [
    await dispatch(script("say: a")),
    await dispatch(script("say: a")),
    await dispatch(script("say: b")),
  ];
  expect([again.status, again.body.run_id, again.body.ticket_ref]).toEqual([
    first.status,
    first.body.run_id,
    first.body.ticket_ref,
  ]);
  expect(other).toMatchObject({ status: 409, body: { error_code: "conflict", retryable: false } });
  await succeeded(api, first.body.run_id);
  const tasks = await eventually(async () => {
    const found = (await api.get(`/factory/${factory}/tasks`)).tasks.filter(
      (one: any) => one.run_id === first.body.run_id,
    );
    return found.length > 0 && found;
  });
  expect(tasks).toHaveLength(1);
});
