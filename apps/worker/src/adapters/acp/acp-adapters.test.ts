import { readFileSync } from "node:fs";
import { describe, expect, test } from "@jest/globals";
import { played } from "../../../test/support/harness-lines.ts";
import type { HarnessAdapter, HarnessEvent, HarnessConnection, StartOptions } from "../harness-adapter.ts";
import { geminiAdapter } from "./gemini-adapter.ts";
import { opencodeAdapter } from "./opencode-adapter.ts";

const recorded = (name: string) =>
  readFileSync(new URL(`../../../test/harnesses/${name}.jsonl`, import.meta.url), "utf8")
    .trim()
    .split("\n");
const sentBy = (lines: readonly string[]) =>
  lines.map(
    (line) =>
      JSON.parse(line) as { id?: number; method?: string; params?: Record<string, any>; result?: any; error?: any },
  );
const methods = (lines: readonly string[]) => sentBy(lines).map(({ method }) => method);

/** Starts three turns. The second is interrupted while its tool runs. */
const threeTurns = () => {
  let turns = 0;
  return (event: HarnessEvent, connection: HarnessConnection) => {
    if (event.t === "session") connection.startTurn("Work.");
    if (event.t === "tool_start" && JSON.stringify(event.input).includes("sleep 345")) connection.interrupt();
    if (event.t === "turn_end" && (turns += 1) < 3) connection.startTurn("Continue.");
  };
};
const start = (id: string | undefined, name: string, input: object) => ({
  t: "tool_start",
  id: id ?? expect.any(String),
  name,
  input,
});
const end = (ok: boolean, output: unknown) => ({ t: "tool_end", id: expect.any(String), ok, output });

test("recorded lines of Gemini CLI become normalised events; what ends after an interrupt was interrupted", async () => {
  const { events, sent } = await played(geminiAdapter, recorded("gemini"), threeTurns());
  expect(events).toEqual([
    { t: "session", session: { id: "eafb1bcf-6098-4134-8321-56628f9c35ba", isResumed: false } },
    { t: "message", text: "I look." },
    start(undefined, "mcp__millwright__artifact", { title: "artifact (millwright MCP Server)" }),
    end(true, '{"ok":true}'),
    start(undefined, "read_file", { title: "nope.txt", files: [{ path: "/workspace/ws/nope.txt" }] }),
    end(false, "File not found: /workspace/ws/nope.txt"),
    start(undefined, "grep_search", { title: "'x'" }),
    end(true, ""),
    start(undefined, "write_todos", { title: "Set 1 todo(s)" }),
    end(true, ""),
    start(undefined, "run_shell_command", { command: "exit 3" }),
    end(false, "Command exited with code: 3"),
    { t: "message", text: "Done." },
    { t: "usage", counted: { input_tokens: 500, output_tokens: 50 } },
    { t: "turn_end", ok: true, message: "Done." },
    { t: "message", text: "Sleep" },
    start(undefined, "run_shell_command", { command: "echo begin; sleep 345; echo never" }),
    end(false, expect.stringContaining("Output before cancellation:\nbegin")),
    { t: "turn_end", ok: false, message: "It was interrupted." },
    { t: "message", text: "After." },
    { t: "usage", counted: { input_tokens: 100, output_tokens: 10 } },
    { t: "turn_end", ok: true, message: "After." },
  ]);
  expect(methods(sent)).toEqual([
    "initialize",
    "session/new",
    "session/prompt",
    "session/prompt",
    "session/cancel",
    "session/prompt",
  ]);
});

test("recorded lines of opencode become normalised events; its token counts are of one step and are not reported", async () => {
  const { events, sent } = await played(opencodeAdapter, recorded("opencode"), threeTurns());
  const work = { description: "x", cwd: "/workspace/ws" };
  expect(events).toEqual([
    { t: "session", session: { id: "ses_dfebdbbc1ffepVc21CQedH4xp1", isResumed: false } },
    start("call_6_0", "read", { filePath: "/workspace/ws/nope.txt" }),
    start("call_6_1", "grep", { pattern: "x" }),
    end(false, "File not found: /workspace/ws/nope.txt"),
    end(false, "ripgrep execution failed"),
    start("call_7_0", "todowrite", { todos: [{ content: "one", status: "in_progress", priority: "high", id: "1" }] }),
    end(true, expect.stringContaining('"one"')),
    start("call_7_1", "bash", { command: "echo oops; exit 3", ...work }),
    end(false, "oops\n"),
    { t: "message", text: "Done." },
    { t: "turn_end", ok: true, message: "Done." },
    { t: "message", text: "Sleep" },
    start("call_1_0", "bash", { command: "echo begin; sleep 345; echo never", ...work }),
    end(false, expect.stringContaining("User aborted the command")),
    { t: "turn_end", ok: false, message: "It was interrupted." },
    { t: "message", text: "After." },
    { t: "turn_end", ok: true, message: "After." },
  ]);
  expect(methods(sent)).toEqual([
    "initialize",
    "session/new",
    "session/prompt",
    "session/prompt",
    "session/cancel",
    "session/prompt",
  ]);
  expect(sentBy(sent)[1]!.params).toEqual({
    cwd: "/workspace",
    mcpServers: [{ type: "http", name: "millwright", url: "http://127.0.0.1:3129/mcp", headers: [] }],
  });
  expect(sentBy(sent)[0]!.params).toMatchObject({
    protocolVersion: 1,
    clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
  });
});

const result = (id: number, value: object = {}) => JSON.stringify({ jsonrpc: "2.0", id, result: value });
const failure = (id: number, message: string, details?: string) =>
  JSON.stringify({
    jsonrpc: "2.0",
    id,
    error: { code: -32603, message, data: details === undefined ? undefined : { details } },
  });
const update = (sessionUpdate: string, fields: object = {}) =>
  JSON.stringify({
    jsonrpc: "2.0",
    method: "session/update",
    params: { sessionId: "s", update: { sessionUpdate, ...fields } },
  });
const messageChunk = (text: string, more: object = {}) =>
  update("agent_message_chunk", { content: { type: "text", text }, ...more });
const begun = [result(1), result(2, { sessionId: "s" })];

/** Plays a session with a running turn, followed by `lines`. */
const inTurn = (
  adapter: HarnessAdapter,
  lines: readonly string[],
  on: (event: HarnessEvent, connection: HarnessConnection) => void = () => {},
  over: Partial<StartOptions> = {},
) =>
  played(
    adapter,
    [...begun, ...lines],
    (event, connection) => (event.t === "session" ? connection.startTurn("Work.") : on(event, connection)),
    over,
  );
const afterSession = ({ events }: { events: readonly HarnessEvent[] }) => events.filter(({ t }) => t !== "session");

describe.each([geminiAdapter, opencodeAdapter])("$type", (adapter) => {
  test("an earlier session is resumed: the history that it replays is not reported again", async () => {
    const replay = [
      update("user_message_chunk", { content: { type: "text", text: "Old." } }),
      messageChunk("Old answer."),
    ];
    const lines = [
      result(1),
      ...replay,
      result(2),
      messageChunk("More of it."),
      result(3),
      messageChunk("Still."),
      failure(4, "Method not found"),
      failure(5, "Method not found"),
      messageChunk("New."),
      result(6, { stopReason: "end_turn" }),
    ];
    const { events, sent } = await played(
      adapter,
      lines,
      (event, connection) => (event.t === "session" ? connection.startTurn("Continue.") : undefined),
      { isResumed: true },
    );
    expect(events).toEqual([
      { t: "session", session: { id: "known", isResumed: true } },
      { t: "message", text: "New." },
      { t: "turn_end", ok: true, message: "New." },
    ]);
    expect(methods(sent)).toEqual([
      "initialize",
      "session/load",
      "_millwright/nothing",
      "_millwright/nothing",
      "_millwright/nothing",
      "session/prompt",
    ]);
  });

  test("a session that cannot be loaded is replaced", async () => {
    const { events } = await played(
      adapter,
      [result(1), failure(2, "Internal error"), result(3, { sessionId: "new" })],
      () => {},
      { isResumed: true },
    );
    expect(events).toEqual([{ t: "session", session: { id: "new", isResumed: false } }]);
  });

  test("a program that cannot start reports why", async () => {
    const { events } = await played(adapter, [result(1), failure(2, "Internal error", "no such model")], () => {});
    expect(events).toEqual([{ t: "turn_end", ok: false, message: "Internal error: no such model" }]);
  });

  test("unknown lines break nothing and are stored unchanged", async () => {
    const unknown = [
      "hello",
      "[1]",
      "{}",
      '{"id":77,"result":{}}',
      '{"method":"news"}',
      '{"method":"session/update"}',
      update("something_new", { of: [1] }),
    ];
    const lines = [
      update("tool_call"),
      update("tool_call_update", { toolCallId: 7, content: "x", status: "odd" }),
      update("usage_update"),
      messageChunk("Done."),
      result(3, { stopReason: "end_turn" }),
    ];
    expect(afterSession(await inTurn(adapter, [...unknown, ...lines]))).toEqual([
      ...unknown.map((line) => ({ t: "unknown", line })),
      { t: "message", text: "Done." },
      { t: "turn_end", ok: true, message: "Done." },
    ]);
  });

  test("a plan is reported when it changes", async () => {
    const entries = [
      { content: "Look", priority: "high", status: "completed" },
      { content: "Act", priority: "low", status: "pending" },
    ];
    const events = afterSession(
      await inTurn(adapter, [
        messageChunk("First."),
        update("plan", { entries }),
        result(3, { stopReason: "end_turn" }),
      ]),
    );
    expect(events.slice(0, 3)).toEqual([
      { t: "message", text: "First." },
      start("plan-1", "plan_update", {
        entries: [
          { content: "Look", status: "completed" },
          { content: "Act", status: "pending" },
        ],
      }),
      end(true, ""),
    ]);
  });

  test.each([
    ["max_tokens", "exceeded its maximum length"],
    ["max_turn_requests", "its own limit"],
    ["refusal", "refused"],
    ["cancelled", "interrupted"],
    ["later_version", "later_version"],
  ])("a turn that stops for %s has failed with that reason", async (stopReason, message) => {
    expect(afterSession(await inTurn(adapter, [result(3, { stopReason })]))).toEqual([
      { t: "turn_end", ok: false, message: expect.stringContaining(message) },
    ]);
  });

  test("a rejected prompt fails its turn; the next one starts again", async () => {
    const events = afterSession(
      await inTurn(
        adapter,
        [
          messageChunk("I be"),
          failure(3, "Rate limit exceeded."),
          messageChunk("Late."),
          result(4, { stopReason: "end_turn" }),
        ],
        (event, connection) => (event.t === "turn_end" && !event.ok ? connection.startTurn("Again.") : undefined),
      ),
    );
    expect(events).toEqual([
      { t: "message", text: "I be" },
      { t: "turn_end", ok: false, message: "Rate limit exceeded." },
      { t: "message", text: "Late." },
      { t: "turn_end", ok: true, message: "Late." },
    ]);
  });

  const permission = (kind: string, title: string, toolCallId = "x__1") =>
    JSON.stringify({
      jsonrpc: "2.0",
      id: 50,
      method: "session/request_permission",
      params: {
        sessionId: "s",
        toolCall: { toolCallId, kind, title },
        options: [
          { optionId: "always", kind: "allow_always" },
          { optionId: "once", kind: "allow_once" },
          { optionId: "no", kind: "reject_once" },
        ],
      },
    });
  const platform = adapter.type === "gemini" ? "plan (millwright MCP Server)" : "millwright_plan";
  test.each([
    ["a command", false, permission("execute", "rm -rf ."), "once"],
    ["a command while a plan awaits approval", true, permission("execute", "rm -rf ."), "no"],
    ["a change while a plan awaits approval", true, permission("edit", "a.txt"), "no"],
    ["what is of no known kind while a plan awaits approval", true, permission("other", "thing"), "no"],
    ["a read-only call while a plan awaits approval", true, permission("read", "a.txt"), "once"],
    ["a platform's tool while a plan awaits approval", true, permission("other", platform), "once"],
  ])("permission for %s (read-only: %s): %#", async (_what, isReadOnly, line, optionId) => {
    const { sent } = await inTurn(adapter, [line], () => {}, { isReadOnly });
    expect(sentBy(sent).at(-1)).toEqual({
      jsonrpc: "2.0",
      id: 50,
      result: { outcome: { outcome: "selected", optionId } },
    });
  });

  test("a permission request without an acceptable option, or for an unsupported capability, is denied", async () => {
    const odd = JSON.stringify({
      jsonrpc: "2.0",
      id: 51,
      method: "session/request_permission",
      params: { options: [{ optionId: "x", kind: "later_version" }] },
    });
    const file = JSON.stringify({
      jsonrpc: "2.0",
      id: 52,
      method: "fs/read_text_file",
      params: { path: "/etc/passwd" },
    });
    const { sent } = await inTurn(adapter, [odd, file]);
    expect(sentBy(sent).slice(-2)).toEqual([
      { jsonrpc: "2.0", id: 51, result: { outcome: { outcome: "cancelled" } } },
      { jsonrpc: "2.0", id: 52, error: { code: -32601, message: expect.any(String) } },
    ]);
  });
});

test("Gemini CLI ignores a cancel while its model generates, so a turn is cancelled once one of its tools runs", async () => {
  const call = (id: string, title: string, status: string) =>
    update("tool_call", { toolCallId: id, title, kind: "execute", status });
  const interruptAtOnce = (event: HarnessEvent, connection: HarnessConnection) =>
    event.t === "message" ? connection.interrupt() : undefined;
  const first = [
    messageChunk("I think"),
    call("mcp_millwright_wait__1", "wait (millwright MCP Server)", "in_progress"),
  ];
  const waiting = await inTurn(geminiAdapter, first, interruptAtOnce);
  expect(methods(waiting.sent)).not.toContain("session/cancel");
  const working = await inTurn(
    geminiAdapter,
    [...first, call("run_shell_command__2", "sleep 9", "in_progress")],
    interruptAtOnce,
  );
  expect(methods(working.sent).at(-1)).toBe("session/cancel");
  const other = await inTurn(
    opencodeAdapter,
    [messageChunk("I think"), update("plan", { entries: [] })],
    interruptAtOnce,
  );
  expect(methods(other.sent).at(-1)).toBe("session/cancel");
});

test("text that the platform returns as the model's to end a turn is not reported as the agent's", async () => {
  const events = afterSession(
    await inTurn(
      geminiAdapter,
      [
        messageChunk("I think"),
        update("plan", { entries: [] }),
        messageChunk("(The platform has ended this turn.)"),
        result(3, { stopReason: "end_turn" }),
      ],
      (event, connection) => (event.t === "message" ? connection.interrupt() : undefined),
    ),
  );
  expect(events.filter(({ t }) => t === "message")).toEqual([{ t: "message", text: "I think" }]);
});

describe("how they are started", () => {
  const options = {
    program: "/.millwright/harness/gemini.js",
    stateDir: "/workspace/.harness/x",
    home: "/home/agent",
    cwd: "/workspace",
    sessionId: "12345678-9",
    isResumed: false,
    provider: "anthropic",
    model: "m",
    reasoning: "high",
    instructions: "Ask with ask_user.",
    systemFile: "/home/agent/s.md",
    isReadOnly: false,
    gateway: "http://gw",
  };

  test("Gemini CLI runs with the platform's Node, uses the gateway as its model, and ignores settings of the repository", () => {
    const argv = geminiAdapter.argv(options);
    expect([argv[0], argv[1], ...argv.slice(3)]).toEqual([
      "/.millwright/node",
      "--import",
      options.program,
      "--acp",
      "--approval-mode",
      "yolo",
      "-m",
      "m",
    ]);
    expect(geminiAdapter.env(options)).toMatchObject({
      GOOGLE_GEMINI_BASE_URL: "http://gw",
      GEMINI_API_KEY: "added-by-the-gateway",
      GEMINI_CLI_HOME: options.stateDir,
    });
    const files = geminiAdapter.files!(options);
    expect(JSON.parse(files[".harness/gemini/.gemini/settings.json"]!)).toMatchObject({
      hooksConfig: { enabled: false },
      mcp: { allowed: ["millwright"] },
    });
    expect(files[".harness/gemini/.gemini/GEMINI.md"]).toBe("Ask with ask_people.");
    expect(geminiAdapter.argv({ ...options, isResumed: true }).slice(0, 6)).toEqual([
      "/bin/sh",
      "-c",
      expect.stringContaining("session-0-"),
      "sh",
      options.stateDir,
      "12345678",
    ]);
    expect(geminiAdapter.argv({ ...options, isReadOnly: true, model: "" }).slice(-2)).toEqual([
      "--approval-mode",
      "default",
    ]);
  });

  test.each([
    ["anthropic", "@ai-sdk/anthropic", "http://gw/v1"],
    ["openai", "@ai-sdk/openai", "http://gw/v1"],
    ["google", "@ai-sdk/google", "http://gw/v1beta"],
    ["openai-compatible", "@ai-sdk/openai-compatible", "http://gw/v1"],
  ])("opencode: with a model of %s behind the gateway", (provider, npm, baseURL) => {
    expect(opencodeAdapter.argv({ ...options, program: "/p/opencode" })).toEqual(["/p/opencode", "acp"]);
    const config = JSON.parse(opencodeAdapter.files!({ ...options, provider })[".harness/opencode/config.json"]!);
    expect(config).toMatchObject({
      model: "millwright/m",
      enabled_providers: ["millwright"],
      permission: "allow",
      provider: {
        millwright: {
          npm,
          options: { baseURL, apiKey: "added-by-the-gateway" },
          models: { m: { options: { reasoningEffort: "high" } } },
        },
      },
    });
    expect(
      JSON.parse(opencodeAdapter.files!({ ...options, provider, isReadOnly: true })[".harness/opencode/config.json"]!)
        .permission,
    ).toMatchObject({ "*": "deny", read: "allow", "millwright_*": "allow" });
  });
});
