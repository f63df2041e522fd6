import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { INSIDE_NODE } from "../../src/sandbox/bubblewrap.ts";
import type { HarnessProgram } from "../../src/sandbox/spec.ts";

/**
 * A stand-in that speaks Claude Code's protocol and takes orders instead of thinking, one a line: \`say\`, \`bash\`, \`model\` (one call of the model),
 * \`tool <name> <json>\` (of the platform), \`hang\`, \`die\`, \`curse\` (to die from now on), \`fail\`, \`flood\`, \`env\`. It keeps its session where Claude Code does, and needs it there to go on.
 */
const SOURCE = `#!${INSIDE_NODE}
if (process.argv.includes("--version")) { console.log("9.9.9 (Fake)"); process.exit(0); }
const { execFile } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const option = (name) => { const at = process.argv.indexOf(name); return at < 0 ? undefined : process.argv[at + 1]; };
const send = (message) => void process.stdout.write(JSON.stringify(message) + "\\n");
const session = option("--resume") ?? option("--session-id");
const file = path.join(process.env.CLAUDE_CONFIG_DIR, "projects", process.cwd().replace(/[^A-Za-z0-9]/g, "-"), session + ".jsonl");
if (option("--resume") && !fs.existsSync(file)) { console.error("No conversation found"); process.exit(1); }
fs.mkdirSync(path.dirname(file), { recursive: true });
const heard = fs.existsSync(file) ? fs.readFileSync(file, "utf8").split("\\n").length - 1 : 0;
const mcp = JSON.parse(option("--mcp-config")).mcpServers.millwright.url;
let stop, calls = 0;
const say = (text) => send({ type: "assistant", message: { id: "m", role: "assistant", content: [{ type: "text", text }] } });
const post = async (url, body) => { const over = new AbortController(); stop = () => over.abort(); const answer = await fetch(url, { signal: over.signal, method: "POST", headers: { "content-type": "application/json", accept: "application/json, text/event-stream" }, body: JSON.stringify(body) }); return { status: answer.status, text: await answer.text() }; };
const started = (name, input) => { const id = "toolu_" + (calls += 1) % 2; send({ type: "assistant", message: { id: "m", content: [{ type: "tool_use", id, name, input }] } }); return (content, isError) => send({ type: "user", message: { role: "user", content: [{ type: "tool_result", tool_use_id: id, content, is_error: isError }] } }); };
const orders = {
  say: async (text) => say(text),
  bash: (command) => new Promise((resolve) => {
    const ended = started("Bash", { command });
    const child = execFile("bash", ["-c", command], (error, stdout, stderr) => { ended(stdout + stderr, Boolean(error)); resolve(); });
    stop = () => child.kill("SIGKILL");
  }),
  model: async () => {
    const { status, text } = await post(process.env.ANTHROPIC_BASE_URL + "/v1/messages?beta=true", { model: option("--model") ?? "claude-sonnet-4-5", max_tokens: 100, stream: true, messages: [{ role: "user", content: "x" }] });
    if (status === 200) return say("The model said " + JSON.stringify([...text.matchAll(/"text":"([^"]*)"/g)].map(([, said]) => said).join("")));
    const refused = JSON.parse(text).error.message;
    return "API Error: " + status + " " + refused;
  },
  tool: async (text) => {
    const [, name, json] = /^(\\S+) ?(.*)$/.exec(text);
    const ended = started("mcp__millwright__" + name, {});
    const { text: answer } = await post(mcp, { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: JSON.parse(json || "{}") } });
    const { result } = JSON.parse(answer);
    ended(result.content, result.isError);
    say("The platform said " + result.content[0].text);
  },
  tools: async () => say(JSON.parse((await post(mcp, { jsonrpc: "2.0", id: 1, method: "tools/list" })).text).result.tools.map(({ name }) => name).join(" ")),
  told: async () => say(fs.readFileSync(option("--append-system-prompt-file"), "utf8") + " | " + process.argv.slice(2).join(" ")),
  hang: () => new Promise((resolve) => { const ended = started("Bash", { command: "sleep" }); stop = () => { ended("killed", true); resolve(); }; }),
  die: async () => { console.error("no more"); process.exit(7); },
  curse: async () => void fs.writeFileSync(process.env.HOME + "/cursed", ""),
  fail: async (text) => text,
  flood: async () => { process.stdout.write("x".repeat(20_000_000) + "\\n"); },
  env: async () => say(JSON.stringify(process.env)),
};
const queue = [];
let isInterrupted = false, isBusy = false;
async function work() {
  if (isBusy) return;
  isBusy = true;
  for (let text = queue.shift(); text !== undefined; text = queue.shift()) {
    fs.appendFileSync(file, JSON.stringify(text) + "\\n");
    isInterrupted = false;
    if (fs.existsSync(process.env.HOME + "/cursed")) orders.die();
    send({ type: "system", subtype: "init", session_id: session });
    send({ type: "something_new", of: ["a", "later", "version"] });
    let fault;
    if (/\\[From the platform\\]|heard/.test(text)) say("I heard " + JSON.stringify(text) + " after " + (heard + 0) + " earlier.");
    for (const line of text.split("\\n")) {
      const [, name, rest] = /^(\\S*) ?(.*)$/.exec(line);
      if (Object.hasOwn(orders, name) && !isInterrupted && !fault) fault = await orders[name](rest).catch((error) => isInterrupted ? undefined : String(error));
    }
    stop = undefined;
    if (isInterrupted) send({ type: "result", subtype: "error_during_execution", is_error: true, usage: {} });
    else send({ type: "result", subtype: "success", is_error: Boolean(fault), result: fault || "All done.", usage: { input_tokens: 1 }, modelUsage: {} });
  }
  isBusy = false;
}
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.type === "user") { queue.push(message.message.content[0].text); void work(); }
  if (message.type === "control_request") { isInterrupted = true; send({ type: "control_response", response: { subtype: "success", request_id: message.request_id } }); stop?.(); }
}).on("close", () => { if (!isBusy) process.exit(0); });
`;

/** Puts it into a directory of its own, as an operator would. */
export async function aFakeClaude(root: string): Promise<HarnessProgram> {
  const directory = join(root, "harness");
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, "claude"), SOURCE);
  await chmod(join(directory, "claude"), 0o755);
  return { directory, file: "claude", version: "9.9.9" };
}
