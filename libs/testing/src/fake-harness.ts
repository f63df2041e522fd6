import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * The behaviour of a fake agent program. It executes orders instead of calling a model, one per line: `say`, `bash`,
 * `model <text>` (one step of the model), `title` (a call without tools), `retry` (a step, repeated until it succeeds),
 * `pair` (two steps at the same time), `abort` (a step that is cancelled after the first piece of its response), `tool
 * <name> <json>` (of the platform), `tools`, `told`, `hang`, `die`, `curse` (die at every start from now on), `fail`,
 * `flood`, `odd` (a line outside of every protocol), `env`. It stores its session where the real program does, and
 * needs it there to resume. A front end implements the protocol: it provides `file`, `mcp`, `say`, `started`, `ask`,
 * `instructions` and `ended`, and calls `work` and `interrupt`.
 */
const ORDERS = `
const { execFile } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const send = (message) => void process.stdout.write(JSON.stringify(message) + "\\n");
let stop, last = "", leavesEarly = false;
const post = async (url, body) => { const over = new AbortController(); stop = () => over.abort(); const answer = await fetch(url, { signal: over.signal, method: "POST", headers: { "content-type": "application/json", accept: "application/json, text/event-stream" }, body: JSON.stringify(body) }); if (leavesEarly) { await answer.body.getReader().read(); over.abort(); return { status: 0, text: "" }; } return { status: answer.status, text: await answer.text() }; };
const toolsOf = ({ hasTools }) => hasTools ? { tools: [{ name: "shell", description: "Runs a command." }] } : {};
const ask = async (what) => {
  const { status, text } = await front.ask(what);
  if (status === 200) return front.say("The model said " + JSON.stringify([...text.matchAll(front.words)].map(([, said]) => said).join("")));
  return "API Error: " + status + " " + JSON.parse(text).error.message;
};
const orders = {
  say: async (text) => front.say((last = text)),
  bash: (command) => new Promise((resolve) => {
    const ended = front.started("shell", { command });
    const refusal = front.refuses?.();
    if (refusal) { ended(refusal, 1); return resolve(); }
    const child = execFile("bash", ["-c", command], (error, stdout, stderr) => { ended(stdout + stderr, error ? error.code || 1 : 0); resolve(); });
    stop = () => child.kill("SIGKILL");
  }),
  model: (text) => ask({ text: text || "x", hasTools: true }),
  pair: async () => (await Promise.all([ask({ text: "one", hasTools: true }), ask({ text: "two", hasTools: true })])).find(Boolean),
  title: () => ask({ text: "Give it a title.", hasTools: false }),
  retry: async () => {
    for (let tried = 0; tried < 5; tried += 1) {
      const { status } = await front.ask({ text: "x", hasTools: true });
      if (status === 200) return front.say("The model answered try " + (tried + 1));
    }
    return "The model gave no answer.";
  },
  abort: async (text) => {
    leavesEarly = true;
    await front.ask({ text: text || "x", hasTools: true });
    leavesEarly = false;
    front.say("I gave up.");
  },
  tool: async (text) => {
    const [, name, json] = /^(\\S+) ?(.*)$/.exec(text);
    const ended = front.started("mcp", { name });
    const { text: answer } = await post(front.mcp, { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: JSON.parse(json || "{}") } });
    const { result } = JSON.parse(answer);
    ended(result.content[0].text, result.isError ? 1 : 0);
    front.say("The platform said " + result.content[0].text);
  },
  tools: async () => front.say(JSON.parse((await post(front.mcp, { jsonrpc: "2.0", id: 1, method: "tools/list" })).text).result.tools.map(({ name }) => name).join(" ")),
  told: async () => front.say(front.instructions() + " | " + process.argv.slice(2).join(" ")),
  hang: () => new Promise((resolve) => { const ended = front.started("shell", { command: "sleep" }); stop = () => { ended("killed", 137); resolve(); }; }),
  die: async () => { console.error("no more"); process.exit(7); },
  curse: async () => void fs.writeFileSync(process.env.HOME + "/cursed", ""),
  fail: async (text) => text,
  flood: async () => { process.stdout.write("x".repeat(20_000_000) + "\\n"); },
  odd: async (text) => void process.stdout.write(text + "\\n"),
  env: async () => front.say(JSON.stringify(process.env)),
};
const queue = [];
let isInterrupted = false, isBusy = false, heard;
async function work(text) {
  queue.push(text);
  if (isBusy) return;
  isBusy = true;
  for (let text = queue.shift(); text !== undefined; text = queue.shift()) {
    heard ??= fs.existsSync(front.file) ? fs.readFileSync(front.file, "utf8").split("\\n").length - 1 : 0;
    fs.mkdirSync(path.dirname(front.file), { recursive: true });
    fs.appendFileSync(front.file, JSON.stringify(text) + "\\n");
    isInterrupted = false;
    if (fs.existsSync(process.env.HOME + "/cursed")) orders.die();
    front.begun();
    let fault;
    if (/\\[From the platform\\]|heard/.test(text)) front.say("I heard " + JSON.stringify(text) + " after " + heard + " earlier.");
    for (const line of text.split("\\n")) {
      const [, name, rest] = /^(\\S*) ?(.*)$/.exec(line);
      if (Object.hasOwn(orders, name) && !isInterrupted && !fault) fault = await orders[name](rest).catch((error) => isInterrupted ? undefined : String(error));
    }
    stop = undefined;
    front.ended(isInterrupted, fault);
  }
  isBusy = false;
}
const interrupt = () => { isInterrupted = true; stop?.(); };
if (process.argv.includes("--version")) { console.log("9.9.9 (Fake)"); process.exit(0); }
`;

/** Claude Code, with `stream-json` in both directions. */
const CLAUDE = `
const option = (name) => { const at = process.argv.indexOf(name); return at < 0 ? undefined : process.argv[at + 1]; };
const session = option("--resume") ?? option("--session-id");
let calls = 0;
const front = {
  file: path.join(process.env.CLAUDE_CONFIG_DIR, "projects", process.cwd().replace(/[^A-Za-z0-9]/g, "-"), session + ".jsonl"),
  words: /"text_delta","text":"([^"]*)"/g,
  mcp: JSON.parse(option("--mcp-config")).mcpServers.millwright.url,
  instructions: () => fs.readFileSync(option("--append-system-prompt-file"), "utf8"),
  say: (text) => send({ type: "assistant", message: { id: "m", role: "assistant", content: [{ type: "text", text }] } }),
  started: (kind, input) => {
    const id = "toolu_" + (calls += 1) % 2;
    send({ type: "assistant", message: { id: "m", content: [{ type: "tool_use", id, name: kind === "shell" ? "Bash" : "mcp__millwright__" + input.name, input: kind === "shell" ? input : {} }] } });
    return (content, code) => send({ type: "user", message: { role: "user", content: [{ type: "tool_result", tool_use_id: id, content, is_error: code !== 0 }] } });
  },
  ask: (what) => post(process.env.ANTHROPIC_BASE_URL + "/v1/messages?beta=true", { model: option("--model") ?? "claude-sonnet-4-5", max_tokens: 100, stream: true, ...toolsOf(what), messages: [{ role: "user", content: what.text }] }),
  begun: () => { send({ type: "system", subtype: "init", session_id: session }); send({ type: "something_new", of: ["a", "later", "version"] }); },
  ended: (isInterrupted, fault) => isInterrupted
    ? send({ type: "result", subtype: "error_during_execution", is_error: true, usage: {} })
    : send({ type: "result", subtype: "success", is_error: Boolean(fault), result: fault || last, usage: { input_tokens: 1 }, modelUsage: {} }),
};
if (option("--resume") && !fs.existsSync(front.file)) { console.error("No conversation found"); process.exit(1); }
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.type === "user") void work(message.message.content[0].text);
  if (message.type === "control_request") { send({ type: "control_response", response: { subtype: "success", request_id: message.request_id } }); interrupt(); }
}).on("close", () => { if (!isBusy) process.exit(0); });
`;

/** Codex, by its app server. */
const CODEX = `
const settings = process.argv.flatMap((text, at) => (process.argv[at - 1] === "-c" ? [text] : []));
const setting = (pattern) => settings.map((text) => pattern.exec(text)?.[1]).find(Boolean);
let thread, turn = 0, calls = 0, told = "", total = 0;
const note = (method, params) => send({ method, params: { threadId: thread, ...(method.startsWith("turn/") ? {} : { turnId: "turn-" + turn }), ...params } });
const item = (what, fields) => note("item/" + what, { item: fields });
const fileOf = (id) => path.join(process.env.CODEX_HOME, "sessions", "2026", "01", "01", "rollout-" + id + ".jsonl");
// A thread uses the sandbox it was started with, unless the request that resumes it names another one.
const sandboxFileOf = (id) => fileOf(id) + ".sandbox";
const keepSandbox = (sandbox) => { fs.mkdirSync(path.dirname(front.file), { recursive: true }); fs.writeFileSync(sandboxFileOf(thread), sandbox); };
const front = {
  get file() { return fileOf(thread); },
  refuses: () => fs.readFileSync(sandboxFileOf(thread), "utf8") === "danger-full-access" ? undefined : "sandbox: command not permitted",
  words: /"delta":"([^"]*)"/g,
  mcp: setting(/^mcp_servers.*url="([^"]*)"/),
  instructions: () => told,
  say: (text) => item("completed", { type: "agentMessage", id: "msg", text }),
  started: (kind, input) => {
    const call = kind === "shell" ? { type: "commandExecution", id: "call_" + (calls += 1), command: input.command } : { type: "mcpToolCall", id: "call_" + (calls += 1), server: "millwright", tool: input.name, arguments: {} };
    item("started", { ...call, status: "inProgress" });
    return (content, code) => item("completed", { ...call, status: code === 0 ? "completed" : "failed", aggregatedOutput: content, exitCode: code, result: { content: [{ type: "text", text: content }] } });
  },
  ask: (what) => post(setting(/base_url="([^"]*)"/) + "/responses", { model: setting(/^model="([^"]*)"/) ?? "gpt-5.4", stream: true, ...toolsOf(what), input: [{ role: "user", content: what.text }] }),
  begun: () => { note("turn/started", { turn: { id: "turn-" + turn, status: "inProgress" } }); note("something/new", { of: ["a", "later", "version"] }); },
  ended: (isInterrupted, fault) => {
    if (!isInterrupted) note("thread/tokenUsage/updated", { tokenUsage: { total: { inputTokens: (total += 1) }, last: { inputTokens: 1 } } });
    note("turn/completed", { turn: { id: "turn-" + turn, status: isInterrupted ? "interrupted" : fault ? "failed" : "completed", error: fault ? { message: fault } : null } });
  },
};
const methods = {
  initialize: () => ({ result: {} }),
  "thread/start": ({ developerInstructions, sandbox }) => { thread = require("node:crypto").randomUUID(); keepSandbox(sandbox ?? setting(/^sandbox_mode="([^"]*)"/)); told = developerInstructions; return { result: { thread: { id: thread, path: front.file } } }; },
  "thread/resume": ({ threadId, developerInstructions, sandbox }) => {
    if (!fs.existsSync(fileOf(threadId))) return { error: { code: -32600, message: "no rollout found" } };
    thread = threadId; told = developerInstructions;
    if (sandbox) keepSandbox(sandbox);
    total = 40;
    setImmediate(() => send({ method: "thread/tokenUsage/updated", params: { threadId, turnId: "before", tokenUsage: { total: { inputTokens: 40 }, last: { inputTokens: 1 } } } }));
    return { result: { thread: { id: thread, path: front.file } } };
  },
  "turn/start": ({ input }) => { turn += 1; setImmediate(() => void work(input[0].text)); return { result: { turn: { id: "turn-" + turn } } }; },
  "turn/interrupt": () => { setImmediate(interrupt); return { result: {} }; },
  "thread/backgroundTerminals/clean": () => ({ result: {} }),
};
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) send({ id, ...(methods[method]?.(params) ?? { error: { code: -32601, message: "no such method" } }) });
}).on("close", () => { if (!isBusy) process.exit(0); });
`;

/** Gemini CLI and opencode, by the Agent Client Protocol, with their differences. */
const ACP = `
const crypto = require("node:crypto");
const isGemini = process.env.GEMINI_CLI_HOME !== undefined;
const state = isGemini ? path.join(process.env.GEMINI_CLI_HOME, ".gemini") : process.env.XDG_DATA_HOME;
const config = isGemini ? {} : JSON.parse(fs.readFileSync(process.env.OPENCODE_CONFIG, "utf8"));
const model = () => isGemini ? (process.argv.includes("-m") ? process.argv[process.argv.indexOf("-m") + 1] : "gemini-2.5-pro") : config.model.split("/").slice(1).join("/");
let session, mcp, calls = 0, isAsking = false, turn;
const note = (sessionUpdate, fields) => send({ jsonrpc: "2.0", method: "session/update", params: { sessionId: session, update: { sessionUpdate, ...fields } } });
const fileOf = (id, began = "2026-01-01T00-00") => isGemini ? path.join(state, "tmp", "w", "chats", "session-" + began + "-" + id.slice(0, 8) + ".jsonl") : path.join(state, "opencode", id + ".jsonl");
const kept = (id) => [fileOf(id, "0"), fileOf(id)].find((file) => fs.existsSync(file));
const front = {
  get file() { return kept(session) ?? fileOf(session); },
  words: isGemini ? /"text":"([^"]*)"/g : /"content":"([^"]*)"/g,
  get mcp() { return mcp; },
  instructions: () => fs.readFileSync(isGemini ? path.join(state, "GEMINI.md") : config.instructions[0], "utf8") + " | " + JSON.stringify(config.permission ?? ""),
  say: (text) => { const messageId = crypto.randomUUID(); for (const part of [text.slice(0, 3), text.slice(3)]) note("agent_message_chunk", { content: { type: "text", text: part }, ...(isGemini ? {} : { messageId }) }); },
  started: (kind, input) => {
    const number = (calls += 1), isShell = kind === "shell";
    const toolCallId = isGemini ? (isShell ? "run_shell_command" : "mcp_millwright_" + input.name) + "__" + number : "call_" + number;
    const call = { toolCallId, kind: isShell ? "execute" : "other", locations: [] };
    if (isGemini) note("tool_call", { ...call, status: "in_progress", title: isShell ? input.command : input.name + " (millwright MCP Server)" });
    else {
      note("tool_call", { ...call, status: "pending", title: isShell ? "bash" : "millwright_" + input.name, rawInput: {} });
      note("tool_call_update", { ...call, status: "in_progress", title: isShell ? input.command : "millwright_" + input.name, rawInput: input });
    }
    return (content, code) => note("tool_call_update", { ...call, status: code === 0 || isInterrupted ? "completed" : "failed", content: [{ type: "content", content: { type: "text", text: content } }] });
  },
  ask: async (what) => {
    isAsking = true;
    const answer = isGemini
      ? await post(process.env.GOOGLE_GEMINI_BASE_URL + "/v1beta/models/" + model() + ":streamGenerateContent?alt=sse", { ...toolsOf(what), contents: [{ role: "user", parts: [{ text: what.text }] }] })
      : await post(config.provider.millwright.options.baseURL + "/chat/completions", { model: model(), stream: true, ...toolsOf(what), messages: [{ role: "user", content: what.text }] });
    isAsking = false;
    return answer;
  },
  begun: () => note("something_new", { of: ["a", "later", "version"] }),
  ended: (isInterrupted, fault) => {
    // Gemini CLI discards a turn that is cancelled while its model responds.
    if (isInterrupted && isAsking && isGemini) fs.writeFileSync(front.file, fs.readFileSync(front.file, "utf8").split("\\n").slice(0, -2).map((line) => line + "\\n").join(""));
    isAsking = false;
    send({ jsonrpc: "2.0", id: turn, ...(fault ? { error: { code: -32603, message: fault } } : { result: { stopReason: isInterrupted ? "cancelled" : "end_turn", ...(isGemini && !isInterrupted ? { _meta: { quota: { token_count: { input_tokens: 1 } } } } : {}) } }) });
  },
};
const begin = (id, { mcpServers }) => { session = id; mcp = mcpServers[0].url; };
const methods = {
  initialize: ({ protocolVersion }) => ({ result: { protocolVersion, agentCapabilities: { loadSession: true } } }),
  "session/new": (params) => { begin(crypto.randomUUID(), params); return { result: { sessionId: session } }; },
  "session/load": (params) => {
    // It rewrites the session's file if that is of the same minute.
    if (isGemini && fs.existsSync(fileOf(params.sessionId))) fs.rmSync(fileOf(params.sessionId));
    if (!kept(params.sessionId)) return { error: { code: -32603, message: "Internal error", data: { details: "Invalid session identifier" } } };
    begin(params.sessionId, params);
    setImmediate(() => { note("user_message_chunk", { content: { type: "text", text: "old" } }); front.say("An old answer."); });
    return { result: {} };
  },
};
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "session/cancel") return interrupt();
  if (method === "session/prompt") { turn = id; return void work(params.prompt[0].text); }
  if (id !== undefined && method !== undefined) send({ jsonrpc: "2.0", id, ...(methods[method]?.(params) ?? { error: { code: -32601, message: "no such method" } }) });
}).on("close", () => { if (!isBusy) process.exit(0); });
`;

const FRONTS = { claude: CLAUDE, codex: CODEX, gemini: ACP, opencode: ACP };
/** Gemini CLI is a script, the others are programs. */
const FILES: Readonly<Record<string, string>> = { gemini: "gemini.js" };
export type FakeHarness = keyof typeof FRONTS;

/** Installs one into its own directory, as an operator would. Returns the program's path. */
export async function aFakeHarness(root: string, type: FakeHarness): Promise<string> {
  const directory = join(root, `harness-${type}`);
  await mkdir(directory, { recursive: true });
  const file = join(directory, FILES[type] ?? type);
  await writeFile(file, `#!/usr/bin/env node\n${ORDERS}${FRONTS[type]}`);
  await chmod(file, 0o755);
  return file;
}
