import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * An MCP server over standard input and output, with well-behaved tools and every kind of misbehavior. It implements
 * the protocol without a library, so that it runs with any Node.js installation.
 */
export const STDIO_SERVER = `
import { createInterface } from "node:readline";
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const text = (id, value, more = {}) => send({ id, result: { content: [{ type: "text", text: value }], ...more } });
const TOOLS = ["add", "secret", "fail", "die", "hang", "flood", "long", "babble", "touch"];
const schema = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } };
process.stdout.write("Hello, I am no message.\\n");
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params = {} } = JSON.parse(line);
  const { name, arguments: input = {} } = params;
  if (method === "initialize") send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "test", version: "1" } } });
  else if (method === "tools/list") send({ id, result: { tools: TOOLS.map((name) => ({ name, description: "Does " + name + ".", inputSchema: schema, annotations: { readOnlyHint: true } })) } });
  else if (method !== "tools/call") return;
  else if (name === "add") text(id, String(input.a + input.b));
  else if (name === "secret") text(id, "env " + process.env.SERVER_KEY + ", argument " + process.argv[2]);
  else if (name === "fail") text(id, "It cannot be done.", { isError: true });
  else if (name === "die") { console.error("out of ideas"); process.exit(7); }
  else if (name === "flood") { const line = JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: "x".repeat(60000) } }) + "\\n"; const pour = () => { while (process.stdout.write(line)); process.stdout.once("drain", pour); }; pour(); }
  else if (name === "long") text(id, "y".repeat(200000));
  else if (name === "babble") { process.stdout.write("z".repeat(3000000)); }
  else if (name === "touch") { import("node:fs").then(({ writeFileSync }) => { writeFileSync("touched.txt", "by a server\\n"); text(id, "done"); }); }
});
`;

/** The shell command that writes the server's file into the sandbox. */
export const PLACE_STDIO_SERVER = `echo ${Buffer.from(STDIO_SERVER).toString("base64")} | base64 -d > ~/server.mjs`;

export type HttpMcpServer = {
  readonly url: string;
  readonly sseUrl: string;
  readonly headers: IncomingMessage["headers"][];
  readonly close: () => Promise<void>;
};

/**
 * Starts the same server over HTTP on an address of this machine: \`/mcp\` for the current protocol, \`/sse\` for the
 * older one.
 */
export async function aHttpMcpServer(host = "127.0.0.2"): Promise<HttpMcpServer> {
  const headers: IncomingMessage["headers"][] = [];
  let stream: ServerResponse | undefined;
  const server = createServer((request, response) => void respond(request, response));

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    headers.push(request.headers);
    if (request.method === "GET" && request.url === "/sse") {
      stream = response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("event: endpoint\ndata: /sse-post\n\n");
      return;
    }
    if (request.method !== "POST" || (request.url !== "/mcp" && request.url !== "/sse-post"))
      return void response.writeHead(405).end();
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const { id, method, params } = JSON.parse(body) as {
      id?: number;
      method: string;
      params?: { protocolVersion?: string; name?: string };
    };
    const result = resultOf(method, params ?? {});
    if (id === undefined || result === undefined) return void response.writeHead(202).end();
    if (result === "huge")
      return void response
        .writeHead(200, { "content-type": "application/json" })
        .end(`{"x":"${"x".repeat(20 * 1024 * 1024)}"}`);
    const message = JSON.stringify({ jsonrpc: "2.0", id, result });
    if (request.url === "/mcp")
      return void response.writeHead(200, { "content-type": "application/json" }).end(message);
    response.writeHead(202).end();
    stream?.write(`event: message\ndata: ${message}\n\n`);
  }

  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const origin = `http://${host}:${(server.address() as AddressInfo).port}`;
  return {
    ...{ url: `${origin}/mcp`, sseUrl: `${origin}/sse`, headers },
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function resultOf(method: string, { protocolVersion, name }: { protocolVersion?: string; name?: string }): unknown {
  if (method === "initialize")
    return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "test", version: "1" } };
  if (method === "tools/list")
    return { tools: ["greet", "huge"].map((tool) => ({ name: tool, inputSchema: { type: "object" } })) };
  if (method !== "tools/call") return undefined;
  return name === "huge" ? "huge" : { content: [{ type: "text", text: "hello" }] };
}
