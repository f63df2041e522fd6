/**
 * A minimal MCP server that runs on any Node.js version, with the tools `add`, `secret` (returns its SERVER_KEY) and
 * `die`.
 */
const SOURCE = `
import { createInterface } from "node:readline";
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const text = (id, value) => send({ id, result: { content: [{ type: "text", text: value }] } });
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params = {} } = JSON.parse(line);
  if (method === "initialize") send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "test", version: "1" } } });
  if (method === "tools/list") send({ id, result: { tools: ["add", "secret", "die"].map((name) => ({ name, inputSchema: { type: "object" } })) } });
  if (method !== "tools/call") return;
  if (params.name === "add") text(id, String(params.arguments.a + params.arguments.b));
  if (params.name === "secret") text(id, process.env.SERVER_KEY);
  if (params.name === "die") process.exit(1);
});
`;

/** The setup command that installs the server in the home directory, and the MCP configuration that starts it. */
export const toolServer = {
  setup: `echo ${Buffer.from(SOURCE).toString("base64")} | base64 -d > ~/tools.mjs`,
  config: {
    command: "sh",
    args: ["-c", 'node=/.millwright/node; [ -x "$node" ] || node=node; exec "$node" --no-warnings ~/tools.mjs'],
  },
};
