import { readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";
import { interpret, played } from "../../../test/support/harness-lines.ts";
import type { HarnessEvent, StartOptions } from "../harness-adapter.ts";
import { codexAdapter } from "./codex-adapter.ts";

const RECORDED = readFileSync(new URL("../../../test/harnesses/codex.jsonl", import.meta.url), "utf8")
  .trim()
  .split("\n");
const THREAD = "01a2014d-134a-7350-a74d-92013799ca12";
const COUNTED = {
  input_tokens: 105,
  cached_input_tokens: 5,
  cache_write_input_tokens: 0,
  output_tokens: 10,
  reasoning_output_tokens: 0,
  total_tokens: 115,
};
const INITIALIZED = '{"id":1,"result":{}}';
const methods = (sent: readonly string[]) => sent.map((line) => (JSON.parse(line) as { method?: string }).method);
const after = (events: readonly HarnessEvent[]) => events.filter(({ t }) => t !== "session");

/** Plays a thread with a running turn `u`, followed by `lines`. */
const inTurn = (...lines: string[]) =>
  played(
    codexAdapter,
    [INITIALIZED, '{"id":2,"result":{"thread":{"id":"t"}}}', '{"id":3,"result":{"turn":{"id":"u"}}}', ...lines],
    (event, connection) => (event.t === "session" ? connection.startTurn("Work.") : undefined),
  );

test("recorded lines of an interrupted turn and the next one become normalised events", async () => {
  const { events, sent } = await played(codexAdapter, RECORDED, (event, connection) => {
    if (event.t === "session") connection.startTurn("Work.");
    if (event.t === "tool_start" && JSON.stringify(event.input).includes("sleep 33")) connection.interrupt();
    if (event.t === "turn_end" && !event.ok) connection.startTurn("Continue.");
  });
  const command = (text: string) => ({
    t: "tool_start",
    id: "call_0",
    name: "exec_command",
    input: { command: `/bin/bash -lc '${text}'` },
  });
  const usage = { t: "usage", counted: COUNTED };
  expect(events).toEqual([
    {
      t: "session",
      session: {
        id: THREAD,
        isResumed: false,
        file: expect.stringMatching(/^\/workspace\/\.harness\/codex\/sessions\/.*\.jsonl$/),
      },
    },
    { t: "message", text: "I look." },
    command("echo hi > a.txt; cat a.txt"),
    { t: "tool_end", id: "call_0", ok: true, output: "hi\n" },
    usage,
    command("exit 3"),
    { t: "tool_end", id: "call_0", ok: false, output: "Exit code 3" },
    usage,
    { t: "tool_start", id: "call_0", name: "mcp__millwright__artifact", input: { file: "a.txt" } },
    { t: "tool_end", id: "call_0", ok: true, output: '{"ok":true}' },
    usage,
    { t: "message", text: "Sleep" },
    command("sleep 33"),
    usage,
    { t: "turn_end", ok: false, message: "Sleep" },
    { t: "message", text: "Gone on." },
    usage,
    { t: "turn_end", ok: true, message: "Gone on." },
  ]);
  expect(methods(sent)).toEqual([
    "initialize",
    "initialized",
    "thread/start",
    "turn/start",
    "turn/interrupt",
    "thread/backgroundTerminals/clean",
    "turn/start",
  ]);
});

test("an earlier thread is resumed, and its token counts are not counted again", async () => {
  const usage = (turnId: string, total: number, last: number) =>
    `{"method":"thread/tokenUsage/updated","params":{"threadId":"known","turnId":"${turnId}","tokenUsage":{"total":{"inputTokens":${total}},"last":{"inputTokens":${last}}}}}`;
  const lines = [
    INITIALIZED,
    '{"id":2,"result":{"thread":{"id":"known","path":"/f"}}}',
    usage("before", 1_000, 400),
    '{"id":3,"result":{"turn":{"id":"u"}}}',
    usage("u", 1_100, 100),
  ];
  const { events, sent } = await played(
    codexAdapter,
    lines,
    (event, connection) => (event.t === "session" ? connection.startTurn("Continue.") : undefined),
    { isResumed: true },
  );
  expect(events).toEqual([
    { t: "session", session: { id: "known", isResumed: true, file: "/f" } },
    { t: "usage", counted: { input_tokens: 100 } },
  ]);
  expect(JSON.parse(sent[2]!)).toMatchObject({
    method: "thread/resume",
    params: { threadId: "known", developerInstructions: "Be good.", excludeTurns: true },
  });
});

test.each([
  [false, "danger-full-access"],
  [true, "read-only"],
])(
  "a thread is started and resumed with the sandbox that its mode allows (read-only: %s)",
  async (isReadOnly, sandbox) => {
    for (const isResumed of [false, true]) {
      const { sent } = await played(codexAdapter, [INITIALIZED], () => {}, { isReadOnly, isResumed });
      expect(JSON.parse(sent.at(-1)!)).toMatchObject({
        method: isResumed ? "thread/resume" : "thread/start",
        params: { sandbox, approvalPolicy: "never", cwd: "/workspace" },
      });
    }
  },
);

test("a thread that is not found is replaced by a new one", async () => {
  const { events } = await played(
    codexAdapter,
    [
      INITIALIZED,
      '{"id":2,"error":{"code":-32600,"message":"no rollout found"}}',
      '{"id":3,"result":{"thread":{"id":"new"}}}',
    ],
    () => {},
    { isResumed: true },
  );
  expect(events).toEqual([{ t: "session", session: { id: "new", isResumed: false } }]);
});

test("an interrupt before the turn has a name waits for it", async () => {
  const { sent } = await played(
    codexAdapter,
    [INITIALIZED, '{"id":2,"result":{"thread":{"id":"t"}}}', '{"id":3,"result":{"turn":{"id":"u"}}}'],
    (event, connection) => {
      if (event.t !== "session") return;
      connection.startTurn("Work.");
      connection.interrupt();
    },
  );
  expect(JSON.parse(sent.at(-1)!)).toMatchObject({ method: "turn/interrupt", params: { threadId: "t", turnId: "u" } });
  expect(methods(sent).filter((method) => method === "turn/interrupt")).toHaveLength(1);
});

const turn = (method: string, rest: string) => `{"method":"${method}","params":{"threadId":"t","turnId":"u",${rest}}}`;
const item = (method: string, text: string) => turn(`item/${method}`, `"item":${text}`);

/** Returns the event of a line that is stored unchanged. */
const unknown = (line: string) => [{ t: "unknown", line }];

test.each<[what: string, line: string, events: object[]]>([
  [
    "a retry",
    turn("error", '"error":{"message":"Reconnecting... 1/5","additionalDetails":"529"},"willRetry":true'),
    [{ t: "warning", text: "The model did not respond (Reconnecting... 1/5: 529); the call is retried." }],
  ],
  ["an error that ends the turn elsewhere", turn("error", '"error":{"message":"No."},"willRetry":false'), []],
  [
    "a failed turn",
    turn("turn/completed", '"turn":{"id":"u","status":"failed","error":{"message":"No."}}'),
    [{ t: "turn_end", ok: false, message: "No." }],
  ],
  ["a silent turn", turn("turn/completed", '"turn":{"id":"u","status":"completed"}'), [{ t: "turn_end", ok: true }]],
  [
    "a change of files",
    item("started", '{"type":"fileChange","id":"f","changes":[{"path":"a.txt","diff":"+a"},7]}'),
    [{ t: "tool_start", id: "f", name: "apply_patch", input: { files: [{ path: "a.txt" }] } }],
  ],
  [
    "a change of files that was refused",
    item("completed", '{"type":"fileChange","id":"f","status":"declined","changes":[{"path":"a.txt","diff":"+a"}]}'),
    [{ t: "tool_end", id: "f", ok: false, output: "a.txt\n+a" }],
  ],
  [
    "a tool of a server that failed",
    item(
      "completed",
      '{"type":"mcpToolCall","id":"m","server":"x","tool":"y","status":"failed","error":{"message":"Gone."}}',
    ),
    [{ t: "tool_end", id: "m", ok: false, output: "Gone." }],
  ],
  [
    "tools that did not start",
    turn("mcpServer/startupStatus/updated", '"name":"millwright","status":"failed","error":"refused"'),
    [{ t: "warning", text: "The tools of millwright did not start: refused." }],
  ],
  [
    "an item of a later version",
    item("completed", '{"type":"news","id":"n"}'),
    unknown(item("completed", '{"type":"news","id":"n"}')),
  ],
  ["an item of another form", item("completed", "[1]"), unknown(item("completed", "[1]"))],
  ["a notification of a later version", turn("turn/news", '"x":1'), unknown(turn("turn/news", '"x":1'))],
  [
    "a line of a turn before",
    turn("item/completed", '"item":{"type":"agentMessage","id":"m","text":"Late."}').replace(
      '"turnId":"u"',
      '"turnId":"before"',
    ),
    [],
  ],
  [
    "a line of another thread",
    '{"method":"turn/completed","params":{"threadId":"other","turn":{"status":"completed"}}}',
    [],
  ],
  ["no JSON", "Hello", unknown("Hello")],
  ["no object", "[1]", unknown("[1]")],
])("%s", async (_, line, events) => expect(after((await inTurn(line)).events)).toEqual(events));

test("a program that cannot start, and a turn that it rejects, end the turn with its message", async () => {
  expect((await played(codexAdapter, ['{"id":1,"error":{"code":1,"message":"Not today."}}'], () => {})).events).toEqual(
    [{ t: "turn_end", ok: false, message: "Not today." }],
  );
  const refused = await played(
    codexAdapter,
    [INITIALIZED, '{"id":2,"result":{"thread":{"id":"t"}}}', '{"id":3,"error":{"code":1,"message":"Too long."}}'],
    (event, connection) => (event.t === "session" ? connection.startTurn("x") : undefined),
  );
  expect(after(refused.events)).toEqual([{ t: "turn_end", ok: false, message: "Too long." }]);
});

test.each<[method: string, isReadOnly: boolean, answer: object]>([
  ["item/commandExecution/requestApproval", false, { result: { decision: "accept" } }],
  ["item/commandExecution/requestApproval", true, { result: { decision: "decline" } }],
  ["item/fileChange/requestApproval", true, { result: { decision: "decline" } }],
  ["item/tool/requestUserInput", false, { result: { answers: {} } }],
  ["mcpServer/elicitation/request", false, { result: { action: "decline", content: null, _meta: null } }],
  [
    "account/chatgptAuthTokens/refresh",
    false,
    { error: { code: -32_601, message: 'Unknown method "account/chatgptAuthTokens/refresh".' } },
  ],
])("asked for %s (read-only: %s), it is answered at once", (method, isReadOnly, answer) => {
  const { sent } = interpret(codexAdapter, [JSON.stringify({ id: 7, method, params: {} })], { isReadOnly });
  expect(JSON.parse(sent.at(-1)!)).toEqual({ jsonrpc: "2.0", id: 7, ...answer });
});

test("is configured for the gateway only, trusts no repository, and has read-only tools in plan mode", () => {
  const options = {
    program: "/codex",
    stateDir: "/s",
    home: "/h",
    cwd: '/w/a"b',
    gateway: "http://127.0.0.1:3129",
    model: "m",
    reasoning: "high",
    isReadOnly: false,
  } as StartOptions;
  const argv = codexAdapter.argv(options);
  expect(argv.slice(0, 2)).toEqual(["/codex", "app-server"]);
  expect(argv).toEqual(
    expect.arrayContaining([
      'projects={"/w/a\\"b"={trust_level="untrusted"}}',
      'sandbox_mode="danger-full-access"',
      'web_search="disabled"',
      'model="m"',
      'model_reasoning_effort="high"',
      "features.hooks=false",
    ]),
  );
  expect(codexAdapter.argv({ ...options, isReadOnly: true })).toEqual(
    expect.arrayContaining(['sandbox_mode="read-only"', "features.shell_tool=false"]),
  );
  expect([codexAdapter.env(options), codexAdapter.directories!(options)]).toEqual([
    { CODEX_HOME: "/s" },
    ["/s", "/h/.codex-databases"],
  ]);
});
