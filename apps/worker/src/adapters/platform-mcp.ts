import type { IncomingMessage, ServerResponse } from "node:http";
import type { JsonObject } from "@bufbuild/protobuf";
import type { CallToolResult, Tool as ListedTool } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import type { Ending } from "../tools/run-tool.ts";
import { isAnObject, textAt } from "../model/event-fields.ts";
import type { Tool } from "../tools/tool.ts";

/** The name of the platform's MCP server in a harness. */
export const PLATFORM_SERVER = "millwright";
/** Returns whether a harness tool is one of the platform's. Calls of these tools are recorded where they run. */
export const isPlatformTool = (name: string): boolean => name.startsWith(`mcp__${PLATFORM_SERVER}__`);

export type PlatformTools = {
  readonly tools: () => readonly Tool[];
  /** Runs a tool and records its start and end events. `malformed` is the raw arguments, if they are not an object. */
  readonly run: (name: string, input: JsonObject, malformed?: string) => Promise<Ending>;
};

/**
 * Handles one HTTP request of the Model Context Protocol (Streamable HTTP without sessions), which provides the
 * platform's tools to a harness. `body` is the parsed JSON of the request, undefined if it was none.
 */
export async function handleMcp(
  platform: PlatformTools,
  { request, response, body }: { request: IncomingMessage; response: ServerResponse; body: unknown },
): Promise<void> {
  const [{ Server }, { StreamableHTTPServerTransport }, types] = await Promise.all([
    import("@modelcontextprotocol/sdk/server/index.js"), // only harnesses with tools need them
    import("@modelcontextprotocol/sdk/server/streamableHttp.js"),
    import("@modelcontextprotocol/sdk/types.js"),
  ]);
  const server = new Server({ name: PLATFORM_SERVER, version: "1.0.0" }, { capabilities: { tools: {} } });
  server.setRequestHandler(types.ListToolsRequestSchema, () => ({ tools: platform.tools().map(listed) }));
  // The SDK's own handler would refuse arguments that are no object; the tool reports them to the model instead.
  server.fallbackRequestHandler = async ({ method, params = {} }) => {
    if (method === "tools/call") return callTool(platform, params as JsonObject);
    throw new types.McpError(types.ErrorCode.MethodNotFound, `Unknown method "${method}".`);
  };
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
  response.once("close", () => void server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response, body ?? null);
}

const listed = ({ name, description, input, inputSchema }: Tool): ListedTool => ({
  name,
  description,
  inputSchema: (inputSchema ?? z.toJSONSchema(input)) as ListedTool["inputSchema"],
});

async function callTool({ run }: PlatformTools, params: JsonObject): Promise<CallToolResult> {
  const { arguments: input = {} } = params;
  const malformed = isAnObject(input) ? undefined : typeof input === "string" ? input : JSON.stringify(input);
  const { state, output } = await run(textAt(params, "name"), isAnObject(input) ? input : {}, malformed);
  const text = typeof output["error"] === "string" ? output["error"] : JSON.stringify(output);
  return { content: [{ type: "text", text }], isError: state !== "completed" };
}
