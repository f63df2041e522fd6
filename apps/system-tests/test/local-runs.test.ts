import { once } from "node:events";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import { type Deployment, OWNER_KEY, processesWith, Program } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { ended, eventsOf, waitForState, runOf, script, waitForEvent, succeeded } from "./support/runs.ts";

let platform: Deployment;
let api: Client;
const clients: Program[] = [];

beforeAll(async () => {
  platform = await startPlatform({ workers: 1, timeScale: 5 });
  api = await connect(platform);
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.kill()));
});
afterAll(() => platform?.remove());

/** Starts `millwright run local -- sh -c SCRIPT` without input. */
function runHere(commands: string, env: Record<string, string> = {}): Program {
  const log = platform.path(`client-${clients.length}-${Math.random().toString(36).slice(2)}.log`);
  const client = new Program("cli/src/main.ts", {
    args: ["run", "local", "--title", "Here", "--", "sh", "-c", commands],
    log,
    env: { MILLWRIGHT_URL: platform.url, MILLWRIGHT_API_KEY: OWNER_KEY, ...env },
  });
  clients.push(client);
  return client;
}
const exitOf = async ({ child }: Program): Promise<number | null> =>
  child.exitCode ?? ((await once(child, "exit")) as [number | null])[0];

/** Returns the id of the newest run that a client executes. */
async function itsRun(client: Program): Promise<string> {
  const known = new Set(seen);
  const runId: string = await eventually(async () => {
    if (client.hasEnded && client.child.exitCode === 2) throw new Error(client.output());
    const { runs } = await api.get("/agent/runs?execution_location=LOCAL&sort_by=created_at&limit=20");
    return runs.map((run: any) => run.run_id).find((id: string) => !known.has(id)) ?? false;
  });
  seen.push(runId);
  return runId;
}
const seen: string[] = [];
const written = async (runId: string): Promise<string> =>
  (await eventsOf(api, runId))
    .filter(({ kind }) => kind === "command_output")
    .map(({ payload }) => payload.text)
    .join("");
const saw = (runId: string, text: string) =>
  waitForEvent(api, runId, ({ kind, payload }) => kind === "command_output" && payload.text.includes(text));

describe("a command that the client executes", () => {
  test("is a LOCAL run with its output, conversation and end, and the client exits with the command's exit code", async () => {
    const client = runHere("echo out; echo err >&2; exit 0");
    const runId = await itsRun(client);
    const run = await succeeded(api, runId);
    expect(run).toMatchObject({
      title: "Here",
      execution_location: "LOCAL",
      source: "LOCAL",
      is_run_type_cancellable: false,
      is_sandbox_running: false,
      started_at: expect.any(String),
      finished_at: expect.any(String),
    });
    expect([await exitOf(client), (await written(runId)).split("\n").toSorted()]).toEqual([0, ["", "err", "out"]]);
    const { steps } = await api.get(`/agent/runs/${runId}/conversation`);
    expect(
      steps[0].messages.flatMap(({ content }: any) => content).map(({ type, name, state }: any) => [type, name, state]),
    ).toEqual([
      ["text", undefined, undefined],
      ["action", "run_command", undefined],
      ["action_result", "run_command", "completed"],
    ]);
    expect(client.output()).toContain("out\n");
    expect((await api.get(`/agent/runs/${runId}/timeline`)).events.map(({ event_type: type }: any) => type)).toEqual([
      "oz_run_created",
      "oz_run_claimed",
      "shared_session_started",
      "agent_started",
      "oz_run_done",
    ]);
  });

  test("that fails makes the run FAILED, with its cause, and the client exits with 1", async () => {
    const client = runHere("exit 7");
    expect(await ended(api, await itsRun(client))).toMatchObject({
      state: "FAILED",
      status_message: {
        error_code: "agent_process_failed",
        message: "The command ended with exit code 7.",
        retryable: false,
      },
    });
    expect(await exitOf(client)).toBe(1);
  });

  test("cannot be cancelled or interrupted from outside or through its task: 422, and it continues", async () => {
    const client = runHere('echo ready; read line; echo "heard $line"');
    const runId = await itsRun(client);
    await saw(runId, "ready");
    expect(await api.call("POST", `/agent/runs/${runId}/cancel`)).toMatchObject({
      status: 422,
      body: { reason: "run_not_cancellable", error_code: "operation_not_supported", retryable: false },
    });
    expect(await api.call("POST", `/agent/runs/${runId}/interrupt`)).toMatchObject({
      status: 422,
      body: { error_code: "operation_not_supported" },
    });
    const tasks = `/factory/${(await api.post("/factory", { name: "Here" })).uid}/tasks`;
    const task = await api.post(tasks, { title: "Here", conversation_id: (await runOf(api, runId)).conversation_id });
    expect(await api.call("POST", `${tasks}/${task.uid}/cancel`)).toMatchObject({
      status: 422,
      body: { reason: "run_not_cancellable", error_code: "operation_not_supported", retryable: false },
    });
    expect((await api.get(`${tasks}?include_current_run=true`)).tasks).toMatchObject([
      { stage: "TRIAGE", current_run: { run_id: runId, state: "INPROGRESS", is_run_type_cancellable: false } },
    ]);
    expect((await runOf(api, runId)).state).toBe("INPROGRESS");
    expect(await api.post(`/agent/runs/${runId}/followups`, { message: "a word" })).toMatchObject({
      outcome: "live_session",
    });
    await succeeded(api, runId);
    expect(await written(runId)).toContain("heard a word");
    expect((await api.get(`/agent/runs/${runId}/followups`)).followups).toMatchObject([
      { message: "a word", state: "delivered" },
    ]);
    expect(await api.call("POST", `/agent/runs/${runId}/cancel`)).toMatchObject({
      status: 400,
      body: { reason: "run_already_finished" },
    });
  });

  test("stopped by its user makes the run CANCELLED, and no process remains", async () => {
    const client = runHere("echo ready; sleep 600", { MARK_OF_LOCAL_RUN: "stopped" });
    const runId = await itsRun(client);
    await saw(runId, "ready");
    expect(processesWith("MARK_OF_LOCAL_RUN=stopped").length).toBeGreaterThan(1);
    client.signal("SIGINT");
    expect(await ended(api, runId)).toMatchObject({ state: "CANCELLED" });
    expect(await exitOf(client)).toBe(1);
    await eventually(() => processesWith("MARK_OF_LOCAL_RUN=stopped").length === 0);
  });

  test("continues in a sandbox with a follow-up after its end, as the same run in the same conversation", async () => {
    const client = runHere("echo local");
    const runId = await itsRun(client);
    await succeeded(api, runId);
    await exitOf(client);
    expect(await api.post(`/agent/runs/${runId}/followups`, { message: script("say: From a sandbox.") })).toMatchObject(
      { outcome: "handoff_execution" },
    );
    expect(await succeeded(api, runId)).toMatchObject({ execution_location: "REMOTE", is_run_type_cancellable: true });
    const { steps } = await api.get(`/agent/runs/${runId}/conversation`);
    expect(steps).toHaveLength(2);
    expect(JSON.stringify(steps[1])).toContain("From a sandbox.");
  });
});

test("the run of a killed client ends as an ERROR that states so", async () => {
  // The end of the input ends the command, so that it does not outlive the client.
  const client = runHere("echo ready; read line");
  const runId = await itsRun(client);
  await saw(runId, "ready");
  await client.kill();
  expect(await waitForState(api, runId, "ERROR")).toMatchObject({
    status_message: { error_code: "agent_process_failed", retryable: false },
  });
  expect((await eventsOf(api, runId)).at(-1).payload).toMatchObject({ state: "ERROR", reason: "client_lost" });
});

test("a client that was frozen for too long ends its command when it wakes", async () => {
  const client = runHere("echo ready; sleep 600", { MARK_OF_LOCAL_RUN: "frozen" });
  const runId = await itsRun(client);
  await saw(runId, "ready");
  client.signal("SIGSTOP");
  await waitForState(api, runId, "ERROR");
  const before = await eventsOf(api, runId);
  client.signal("SIGCONT");
  expect(await exitOf(client)).toBe(1);
  await eventually(() => processesWith("MARK_OF_LOCAL_RUN=frozen").length === 0);
  expect(await eventsOf(api, runId)).toEqual(before);
});
