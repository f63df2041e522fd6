import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import type { JsonObject } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { z } from "zod";
import type { Ending } from "../tools/run-tool.ts";
import type { Tool } from "../tools/tool.ts";
import { handleMcp, type PlatformTools } from "./platform-mcp.ts";

const tools = [
  { name: "say", description: "Says a text.", input: z.object({ text: z.string() }) },
  { name: "far", description: "A tool of a server.", inputSchema: { type: "object", properties: { n: {} } } },
] as unknown as Tool[];

const calls: unknown[][] = [];
const platform: PlatformTools = {
  tools: () => tools,
  run: async (...call): Promise<Ending> => {
    calls.push(call);
    if (call[0] === "say") return { state: "completed", output: { said: true } };
    return { state: "failed", output: { error: "No." } };
  },
};

let server: Server;
let url: URL;
beforeEach(async () => {
  calls.length = 0;
  server = createServer(
    (request, response) =>
      void json(request).then(
        (body) => handleMcp(platform, { request, response, body }),
        () => handleMcp(platform, { request, response, body: undefined }),
      ),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function connect(): Promise<Client> {
  const client = new Client({ name: "a harness", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(url));
  return client;
}

const send = async (message: unknown, headers: Record<string, string> = {}) => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
    body: typeof message === "string" ? message : JSON.stringify(message),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? undefined : (JSON.parse(text) as JsonObject) };
};

test("the SDK's client lists and calls the tools", async () => {
  const client = await connect();
  expect(client.getServerVersion()).toEqual({ name: "millwright", version: "1.0.0" });
  await client.ping();
  expect((await client.listTools()).tools).toMatchObject([
    { name: "say", description: "Says a text.", inputSchema: { type: "object", required: ["text"] } },
    { name: "far", inputSchema: { type: "object", properties: { n: {} } } },
  ]);
  expect(await client.callTool({ name: "say", arguments: { text: "hi" } })).toEqual({
    content: [{ type: "text", text: '{"said":true}' }],
    isError: false,
  });
  expect(await client.callTool({ name: "far" })).toEqual({ content: [{ type: "text", text: "No." }], isError: true });
  expect(calls).toEqual([
    ["say", { text: "hi" }, undefined],
    ["far", {}, undefined],
  ]);
  await client.close();
});

test.each(["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])("speaks protocol version %s", async (version) => {
  const params = { protocolVersion: version, capabilities: {}, clientInfo: { name: "a harness", version: "1" } };
  const { body } = await send({ jsonrpc: "2.0", id: 1, method: "initialize", params });
  expect(body).toMatchObject({ id: 1, result: { protocolVersion: version } });
});

test("malformed arguments reach the tool as text, which reports them to the model", async () => {
  for (const given of ["{", [1]])
    await send({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "say", arguments: given } });
  expect(calls).toEqual([
    ["say", {}, "{"],
    ["say", {}, "[1]"],
  ]);
});

test("an unknown method, a body that is no request and a notification have the responses of the protocol", async () => {
  expect(await send({ jsonrpc: "2.0", id: 7, method: "resources/list" })).toMatchObject({
    status: 200,
    body: { id: 7, error: { code: -32_601, message: expect.stringContaining('Unknown method "resources/list".') } },
  });
  for (const wrong of ["nonsense", { hello: "there" }])
    expect(await send(wrong)).toMatchObject({ status: 400, body: { error: { code: -32_700 } } });
  expect(await send({ jsonrpc: "2.0", method: "notifications/initialized" })).toEqual({ status: 202, body: undefined });
});
