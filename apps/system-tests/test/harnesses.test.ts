/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { afterAll, beforeAll, expect } from "@jest/globals";
import { aFakeHarness, eventually, ModelServer, needs, type FakeHarness } from "@millwright/testing";
import { newDirectory, removeDirectory } from "../src/directory.ts";
import type { Deployment } from "../src/index.ts";
import { processesOfRuns } from "../src/processes.ts";
import { connect, type Client } from "./support/client.ts";
import { SLOW_MS, startPlatform } from "./support/deployment.ts";
import { eventsOf, reached, RUN_TIMEOUT_MS, script, startRun, succeeded } from "./support/runs.ts";

const KEY = "canary-key-of-the-platform";
/** What each of the stand-ins is known by, and what it calls its shell. */
const HARNESSES: readonly { type: FakeHarness; name: string; shell: string }[] = [
  { type: "claude", name: "CLAUDE_CODE", shell: "Bash" },
  { type: "codex", name: "CODEX", shell: "exec_command" },
];

let models: ModelServer;
let platform: Deployment;
let api: Client;
let directory: string;

beforeAll(async () => {
  models = await ModelServer.start([{ text: "hello", usage: { input: 100, output: 10 } }]);
  directory = await newDirectory();
  const [claude, codex] = await Promise.all(HARNESSES.map(({ type }) => aFakeHarness(directory, type)));
  platform = await startPlatform({
    env: {
      ...{ MILLWRIGHT_HARNESS_CLAUDE: claude!, ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: models.url },
      ...{ MILLWRIGHT_HARNESS_CODEX: codex!, OPENAI_API_KEY: KEY, OPENAI_BASE_URL: `${models.url}/v1` },
    },
  });
  api = await connect(platform);
}, SLOW_MS);
afterAll(async () => {
  await platform?.remove();
  await models?.stop();
  if (directory) await removeDirectory(directory);
});

const lines = (...orders: string[]) => orders.join("\n");
const start = (type: string, ...orders: string[]) => startRun(api, lines(...orders), { config: { harness: { type } } });
const saidIn = (value: unknown) => JSON.stringify(value);
const usageOf = (runId: string): Promise<any> => api.get(`/agent/runs/${runId}/harness-usage`);
const begun = (runId: string, calls: number) =>
  eventually(async () => expect((await eventsOf(api, runId)).filter(({ kind }) => kind === "tool_start")).toHaveLength(calls), { timeoutMs: RUN_TIMEOUT_MS });

for (const { type, name, shell } of HARNESSES) {
  needs("bwrap", `a run with ${type} shows what its program says, does, makes and uses`, async () => {
    const runId = await start(type, "say I begin.", "bash echo made > made.txt", "model", 'tool artifact {"file": "made.txt", "title": "Made"}', "say I end.");
    const run = await succeeded(api, runId);
    expect(run.agent_config.harness).toEqual({ type });
    expect(run.artifacts).toMatchObject([{ artifact_type: "FILE" }]);
    expect(run.request_usage.total_tokens).toBe(110);
    const { steps } = await api.get(`/agent/runs/${runId}/conversation`);
    for (const part of ["I begin.", "run_command", 'The model said \\"hello\\"', "report_artifact", "I end."]) expect(saidIn(steps)).toContain(part);
    expect((await api.get(`/agent/runs/${runId}/timeline`)).events.map(({ event_type: kind }: any) => kind)).toEqual(expect.arrayContaining(["agent_started", "oz_run_done"]));
    expect(saidIn([run, steps, await eventsOf(api, runId)])).not.toContain(KEY);

    // What the program has written down itself, under either address.
    for (const target of [`/agent/runs/${runId}`, `/agent/conversations/${run.conversation_id}`]) {
      const { status, headers } = await api.call("GET", `${target}/transcript`);
      expect(status).toBe(302);
      expect((await api.fetch(headers.get("location")!)).text).toMatch(/^"say I begin\.[^\n]*"\n$/);
    }

    const executionId = (await eventsOf(api, runId)).find(({ kind }) => kind === "agent_started").execution_id;
    const calls = { [shell]: 1, mcp__millwright__artifact: 1 };
    expect(await usageOf(runId)).toEqual({
      ...{ available: true, run_id: runId, conversation_id: run.conversation_id, age_seconds: expect.any(Number) },
      usage: {
        ...{ harness: name, metricsVersion: 1, captureSequence: expect.any(Number), capturedAt: expect.any(String), executionId },
        snapshot: { coverage: { tokenStatus: "known", toolStatus: "known" }, payload: { usage: { input_tokens: 1 }, toolCalls: { byName: calls, total: 2 } } },
      },
    });
  });

  needs("bwrap", `a run with ${type} takes follow-ups while it works and after its end, in one session; nobody else can interrupt it`, async () => {
    const runId = await start(type, "bash echo kept > kept.txt", "hang", "say never said");
    await begun(runId, 2);
    const interrupted = await api.call("POST", `/agent/runs/${runId}/interrupt`);
    expect([interrupted.status, interrupted.body.error_code]).toEqual([422, "operation_not_supported"]);
    expect(await api.post(`/agent/runs/${runId}/followups`, { message: "heard News" })).toMatchObject({ outcome: "live_session" });
    await succeeded(api, runId);
    const first = await usageOf(runId);
    expect(await api.post(`/agent/runs/${runId}/followups`, { message: lines("heard More", "bash cat kept.txt") })).toMatchObject({ outcome: "handoff_execution" });
    await eventually(async () => expect(saidIn(await api.get(`/agent/runs/${runId}/conversation`))).toContain("heard More"), { timeoutMs: RUN_TIMEOUT_MS });
    await succeeded(api, runId);
    const events = await eventsOf(api, runId);
    const said = events.filter(({ kind, payload }) => kind === "message" && payload.role === "assistant").map(({ payload }) => payload.text);
    expect(said).toEqual([expect.stringMatching(/^I heard "heard News" after 0 earlier/), expect.stringMatching(/^I heard "heard More.* after 2 earlier/)]);
    expect(events.filter(({ kind }) => kind === "tool_end").map(({ payload }) => [payload.state, payload.output.output])).toEqual([["completed", ""], ["interrupted", undefined], ["completed", "kept\n"]]);

    // Of the interrupted turn it has said nothing; the second execution adds to what the first one counted.
    const { usage } = await usageOf(runId);
    expect(usage.snapshot).toEqual({ coverage: { tokenStatus: "partial", toolStatus: "known" }, payload: { usage: { input_tokens: 2 }, toolCalls: { byName: { [shell]: 3 }, total: 3 } } });
    expect(usage.captureSequence).toBeGreaterThan(first.usage.captureSequence);
    expect(usage.executionId).toBeGreaterThan(first.usage.executionId);
  });

  needs("bwrap", `a run with ${type} is cancelled with every process; what it has not counted is unavailable, not zero`, async () => {
    const runId = await start(type, "hang");
    await begun(runId, 1);
    expect(processesOfRuns([runId])).not.toEqual([]);
    await api.post(`/agent/runs/${runId}/cancel`);
    await reached(api, runId, "CANCELLED");
    await eventually(() => expect(processesOfRuns([runId])).toEqual([]), { timeoutMs: RUN_TIMEOUT_MS });
    expect(await usageOf(runId)).toEqual({ available: false, run_id: runId, conversation_id: expect.any(String) });
    const { status, headers } = await api.call("GET", `/agent/runs/${runId}/transcript`);
    expect([status, (await api.fetch(headers.get("location")!)).text]).toEqual([302, expect.stringContaining('"kind":"run_created"')]);
  });
}

needs("bwrap", "the platform's own runs, and programs that publish no numbers, have no usage of a harness", async () => {
  const runId = await startRun(api, script("say: Done."));
  await succeeded(api, runId);
  expect(await usageOf(runId)).toMatchObject({ available: false, run_id: runId });
});
