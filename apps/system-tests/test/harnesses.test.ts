/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { afterAll, beforeAll, expect } from "@jest/globals";
import {
  aFakeHarness,
  AGENT_PROGRAMS,
  eventually,
  ModelServer,
  needs,
  type FakeHarness,
  type ModelAnswer,
  type ModelRequest,
} from "@millwright/testing";
import type { Program } from "@millwright/test-platform";
import { git, newDirectory, processesOfRuns, removeDirectory } from "@millwright/test-platform";
import { HarnessPlatform, KEY, messagesOf } from "./support/agent-programs.ts";
import type { Client } from "./support/client.ts";
import { eventsOf, waitForState, RUN_TIMEOUT_MS, script, waitForEvent, startRun, succeeded } from "./support/runs.ts";

/** Name of each stand-in's shell tool, and the name under which its usage is published, if any. */
const HARNESSES: readonly { type: FakeHarness; name?: string; shell: string }[] = [
  { type: "claude", name: "CLAUDE_CODE", shell: "Bash" },
  { type: "codex", name: "CODEX", shell: "exec_command" },
  { type: "gemini", shell: "run_shell_command" },
  { type: "opencode", shell: "bash" },
];

let models: ModelServer;
let works: HarnessPlatform;
let api: Client;
let directory: string;
let worker: Program;

beforeAll(async () => {
  models = await ModelServer.start(respond);
  directory = await newDirectory();
  const files = await Promise.all(
    HARNESSES.map(async ({ type }) => [type, await aFakeHarness(directory, type)] as const),
  );
  works = await HarnessPlatform.start(models, Object.fromEntries(files));
  api = works.api;
  worker = works.startWorker("one");
});
afterAll(async () => {
  await works?.remove();
  await models?.stop();
  if (directory) await removeDirectory(directory);
});

/** Chooses the model's answer by the prompt, so that concurrent runs can use it. */
function respond({ body }: ModelRequest): ModelAnswer {
  const text = JSON.stringify(body);
  if (text.includes("Never end"))
    return { text: "It begins", usage: { input: 70, output: 900 }, until: new Promise(() => {}) };
  if (text.includes("Refuse")) return { status: 400, message: "Not like this." };
  return { text: "hello", usage: { input: 100, output: 10 } };
}

const lines = (...orders: string[]) => orders.join("\n");
const start = (type: FakeHarness, ...orders: string[]) => works.startRun(AGENT_PROGRAMS[type], lines(...orders));
const textOf = (value: unknown) => JSON.stringify(value);
const usageOf = (runId: string): Promise<any> => api.get(`/agent/runs/${runId}/harness-usage`);
const begun = (runId: string, calls: number) =>
  eventually(
    async () => expect((await eventsOf(api, runId)).filter(({ kind }) => kind === "tool_start")).toHaveLength(calls),
    { timeoutMs: RUN_TIMEOUT_MS },
  );
/** Returns the output of each shell command, or its state if it did not complete. */
const shellEndsOf = async (runId: string) =>
  (await eventsOf(api, runId))
    .filter(({ kind, payload }) => kind === "tool_end" && payload.name === "run_command")
    .map(({ payload: { state, output } }) => (state === "completed" ? output.output : state));
const holdersOf = async (runId: string): Promise<string[]> =>
  (await eventsOf(api, runId)).filter(({ kind }) => kind === "run_claimed").map(({ payload }) => payload.worker_host);
/** Sends a follow-up to a run that has ended. Returns the run after the follow-up has been processed. */
async function continueRun(runId: string, ...orders: string[]): Promise<any> {
  const before = await eventsOf(api, runId);
  expect(await api.post(`/agent/runs/${runId}/followups`, { message: lines(...orders) })).toMatchObject({
    outcome: "handoff_execution",
  });
  const sinceThen = async () =>
    (await eventsOf(api, runId)).slice(before.length).map(({ kind, payload }) => [kind, payload]);
  await eventually(async () => expect(await sinceThen()).toContainEqual(["run_finished", expect.anything()]), {
    timeoutMs: 3 * RUN_TIMEOUT_MS,
  });
  return succeeded(api, runId);
}

for (const { type, name, shell } of HARNESSES) {
  needs("bwrap", `a run with ${type} shows the messages, actions, artifacts and usage of its program`, async () => {
    const runId = await start(
      type,
      "say I begin.",
      "odd Ready?",
      "bash echo two > a.txt && git commit -qam two",
      "model",
      'tool artifact {"file": "a.txt", "title": "Made"}',
      'tool pull_request {"title": "Two"}',
      "say I end.",
    );
    const run = await succeeded(api, runId);
    expect(run.agent_config.harness.type).toBe(type);
    expect(run.artifacts).toMatchObject([{ artifact_type: "FILE" }, { artifact_type: "PULL_REQUEST" }]);
    expect([
      git(works.repository, "show", `agent/${runId}:a.txt`),
      git(works.repository, "log", "--format=%s", `main..agent/${runId}`),
    ]).toEqual(["two\n", "two\n"]);
    expect(run.request_usage.total_tokens).toBe(110);
    // The team has configured its own address for each provider.
    expect(run.request_usage.model_token_usage.map(({ usage_type: usageType }: any) => usageType)).toEqual([
      "custom_endpoint",
    ]);
    const { steps } = await api.get(`/agent/runs/${runId}/conversation`);
    for (const part of [
      "I begin.",
      "run_command",
      'The model said \\"hello\\"',
      "report_artifact",
      "open_pull_request",
      "I end.",
    ])
      expect(textOf(steps)).toContain(part);
    expect((await api.get(`/agent/runs/${runId}/timeline`)).events.map(({ event_type: kind }: any) => kind)).toEqual(
      expect.arrayContaining(["agent_started", "oz_run_done"]),
    );
    expect(textOf([run, steps, await eventsOf(api, runId)])).not.toContain(KEY);

    // The transcript file of the program, followed by its other output; both URLs return the same. Programs that do not
    // report the path of their transcript have the events of the run instead.
    for (const target of [`/agent/runs/${runId}`, `/agent/conversations/${run.conversation_id}`]) {
      const { status, headers } = await api.call("GET", `${target}/transcript`);
      expect(status).toBe(302);
      const { text } = await api.fetch(headers.get("location")!);
      if (name === undefined) expect(text).toMatch(/"kind":"harness_line"[^\n]*"Ready\?"/);
      else expect(text).toMatch(/^"say I begin\.[^\n]*"\n\{[^\n]*"later","version"[^\n]*\}\nReady\?\n$/);
    }

    const ids = { run_id: runId, conversation_id: run.conversation_id };
    if (name === undefined) return expect(await usageOf(runId)).toEqual({ available: false, ...ids });

    const executionId = (await eventsOf(api, runId)).find(({ kind }) => kind === "agent_started").execution_id;
    const calls = { [shell]: 1, mcp__millwright__artifact: 1, mcp__millwright__pull_request: 1 };
    expect(await usageOf(runId)).toEqual({
      ...{ available: true, ...ids, age_seconds: expect.any(Number) },
      reconciliation: expect.objectContaining({ unmeasured_call_count: 0, metered_tokens: expect.any(Number) }),
      usage: {
        ...{
          harness: name,
          metricsVersion: 1,
          captureSequence: expect.any(Number),
          capturedAt: expect.any(String),
          executionId,
        },
        snapshot: {
          coverage: { tokenStatus: "known", toolStatus: "known" },
          payload: { usage: { input_tokens: 1 }, toolCalls: { byName: calls, total: 3 } },
        },
      },
    });
  });

  needs(
    "bwrap",
    `a run with ${type} accepts follow-ups while it is active and after its end, in one session; others cannot interrupt it`,
    async () => {
      const runId = await start(type, "bash echo kept > kept.txt", "hang", "say never said");
      await begun(runId, 2);
      const interrupted = await api.call("POST", `/agent/runs/${runId}/interrupt`);
      expect([interrupted.status, interrupted.body.error_code]).toEqual([422, "operation_not_supported"]);
      expect(await api.post(`/agent/runs/${runId}/followups`, { message: "heard News" })).toMatchObject({
        outcome: "live_session",
      });
      await succeeded(api, runId);
      const first = await usageOf(runId);
      await continueRun(runId, "heard More", "bash cat kept.txt");
      expect(await messagesOf(api, runId)).toEqual([
        expect.stringMatching(/^I heard "heard News" after 0 earlier/),
        expect.stringMatching(/^I heard "heard More.* after 2 earlier/),
      ]);
      expect(await shellEndsOf(runId)).toEqual(["", "interrupted", "kept\n"]);

      // The interrupted turn reported no usage; the second execution adds to the usage of the first.
      const { usage } = await usageOf(runId);
      if (name === undefined) return expect(usage).toBeUndefined();
      expect(usage.snapshot).toEqual({
        coverage: { tokenStatus: "partial", toolStatus: "known" },
        payload: { usage: { input_tokens: 2 }, toolCalls: { byName: { [shell]: 3 }, total: 3 } },
      });
      expect(usage.captureSequence).toBeGreaterThan(first.usage.captureSequence);
      expect(usage.executionId).toBeGreaterThan(first.usage.executionId);
    },
  );

  needs("bwrap", `a model call that ${type} aborts ends at the provider; the run's usage includes it`, async () => {
    const runId = await start(type, "abort Never end", "model");
    const { request_usage: usage } = await succeeded(api, runId);
    expect(models.abandoned.filter(({ wire }) => wire === AGENT_PROGRAMS[type].provider)).toHaveLength(1);
    const recorded = (await eventsOf(api, runId))
      .filter(({ kind }) => kind === "usage_recorded")
      .map(({ payload }) => payload);
    expect(recorded.map(({ estimated = false }) => estimated)).toEqual([true, false]);
    const tokens = recorded.reduce((sum, { input_tokens: input, output_tokens: output }) => sum + input + output, 0);
    expect([usage.total_tokens, tokens > 110]).toEqual([tokens, true]);
  });

  needs("bwrap", `a run with ${type} ends with the provider's refusal`, async () => {
    const runId = await start(type, "model Refuse", "say never said");
    const { status_message: status } = await waitForState(api, runId, "FAILED");
    expect(status).toMatchObject({
      error_code: "invalid_request",
      retryable: false,
      message: expect.stringContaining("400: Not like this."),
    });
  });

  needs("bwrap", `a run with ${type} runs commands after its plan is approved`, async () => {
    const plan = 'tool plan {"title": "P", "markdown": "M"}';
    const runId = await works.startRun(AGENT_PROGRAMS[type], lines(plan, "say never said"), { mode: "plan" });
    await waitForState(api, runId, "BLOCKED");
    await continueRun(runId, "bash echo two > a.txt && cat a.txt");
    expect(await shellEndsOf(runId)).toEqual(["two\n"]);
  });

  needs(
    "bwrap",
    `a run with ${type} is cancelled with every process; usage that it did not report is unavailable, not zero`,
    async () => {
      const runId = await start(type, "hang");
      await begun(runId, 1);
      expect(processesOfRuns([runId])).not.toEqual([]);
      await api.post(`/agent/runs/${runId}/cancel`);
      await waitForState(api, runId, "CANCELLED");
      await eventually(() => expect(processesOfRuns([runId])).toEqual([]), { timeoutMs: RUN_TIMEOUT_MS });
      expect(await usageOf(runId)).toEqual({ available: false, run_id: runId, conversation_id: expect.any(String) });
      const { status, headers } = await api.call("GET", `/agent/runs/${runId}/transcript`);
      expect([status, (await api.fetch(headers.get("location")!)).text]).toEqual([
        302,
        expect.stringContaining('"kind":"run_created"'),
      ]);
    },
  );
}

needs(
  "bwrap",
  "a run with each program resumes on another worker when its worker is killed during a tool call, without a remaining process or a repeated commit; after its end it is continued on a third worker",
  async () => {
    const runs = await Promise.all(
      HARNESSES.map(({ type }) =>
        start(type, "bash echo two > a.txt && git commit -qam two", "hang", "say never said"),
      ),
    );
    await Promise.all(
      runs.map(async (runId) => {
        await begun(runId, 2);
        await waitForEvent(api, runId, ({ kind }) => kind === "checkpoint");
      }),
    );
    const orphans = processesOfRuns(runs).map(({ pid }) => pid);
    expect(orphans.length).toBeGreaterThanOrEqual(runs.length);
    const second = works.startWorker("two");
    await works.hasWorker("two");
    worker.signal("SIGKILL");
    await Promise.all(runs.map((runId) => succeeded(api, runId)));
    expect(processesOfRuns(runs).filter(({ pid }) => orphans.includes(pid))).toEqual([]);
    for (const runId of runs) {
      expect([...new Set(await holdersOf(runId))]).toEqual(["one", "two"]);
      expect(await messagesOf(api, runId)).toEqual([
        expect.stringMatching(/^I heard "\[From the platform\] You were interrupted.* after 1 earlier/),
      ]);
      expect(await shellEndsOf(runId)).toEqual(["", "interrupted"]);
    }

    // The program's usage and tool counts were lost with the first worker.
    const usages = (await Promise.all(runs.map(usageOf))).filter(({ available }) => available);
    expect(usages.map(({ usage }) => usage.snapshot.coverage)).toEqual(
      Array(2).fill({ tokenStatus: "partial", toolStatus: "partial" }),
    );

    await second.kill();
    works.startWorker("three");
    await works.hasWorker("three");
    await Promise.all(
      runs.map((runId) =>
        continueRun(
          runId,
          "heard Back",
          "bash cat a.txt; git log --format=%s main..",
          'tool pull_request {"title": "Two"}',
        ),
      ),
    );
    for (const runId of runs) {
      expect((await holdersOf(runId)).at(-1)).toBe("three");
      expect((await messagesOf(api, runId))[1]).toMatch(/^I heard "heard Back.* after 2 earlier/);
      expect((await shellEndsOf(runId)).at(-1)).toBe("two\ntwo\n");
      expect(git(works.repository, "log", "--format=%s", `main..agent/${runId}`)).toBe("two\n");
    }
  },
);

needs("bwrap", "the usage of a program that died during a turn is partial", async () => {
  const runId = await start("codex", "model", "die");
  await succeeded(api, runId);
  expect((await usageOf(runId)).usage.snapshot.coverage).toEqual({ tokenStatus: "partial", toolStatus: "known" });
});

needs("bwrap", "the platform's own runs have no usage of a harness", async () => {
  const runId = await startRun(api, script("say: Done."));
  await succeeded(api, runId);
  expect(await usageOf(runId)).toMatchObject({ available: false, run_id: runId });
});
