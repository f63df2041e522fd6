import type { JsonObject } from "@bufbuild/protobuf";
import { z } from "zod";
import type { Ending } from "../harness/run-tool.ts";
import { isAnObject, objectAt, textAt } from "../model/event-fields.ts";
import type { Tool } from "../tools/tool.ts";

/** The name of the platform's MCP server in a harness. */
export const PLATFORM_SERVER = "millwright";
/** Returns whether a harness tool is one of the platform's. Calls of these tools are recorded where they run. */
export const isPlatformTool = (name: string): boolean => name.startsWith(`mcp__${PLATFORM_SERVER}__`);

const VERSION = "2025-06-18";

export type PlatformTools = {
  readonly tools: () => readonly Tool[];
  /** Runs a tool and records its start and end events. `malformed` is the raw arguments, if they are not an object. */
  readonly run: (name: string, input: JsonObject, malformed?: string) => Promise<Ending>;
};

/**
 * Handles one message of the Model Context Protocol, which provides the platform's tools to a harness. Returns
 * undefined for a notification.
 */
export async function answerMcp({ tools, run }: PlatformTools, message: unknown): Promise<JsonObject | undefined> {
  if (!isAnObject(message) || typeof message["method"] !== "string")
    return { jsonrpc: "2.0", id: null, error: { code: -32_600, message: "No request." } };
  const { id, method } = message;
  if (id === undefined || id === null) return undefined;
  const params = objectAt(message, "params");
  const answer = (result: JsonObject): JsonObject => ({ jsonrpc: "2.0", id, result });
  switch (method) {
    case "initialize":
      return answer({
        protocolVersion: textAt(params, "protocolVersion") || VERSION,
        capabilities: { tools: {} },
        serverInfo: { name: PLATFORM_SERVER, version: "1.0.0" },
      });
    case "ping":
      return answer({});
    case "tools/list":
      return answer({
        tools: tools().map(({ name, description, input, inputSchema }) => ({
          name,
          description,
          inputSchema: inputSchema ?? (z.toJSONSchema(input) as JsonObject),
        })),
      });
    case "tools/call": {
      const { arguments: input = {} } = params;
      const malformed = isAnObject(input) ? undefined : typeof input === "string" ? input : JSON.stringify(input);
      const { state, output } = await run(textAt(params, "name"), isAnObject(input) ? input : {}, malformed);
      return answer({
        content: [
          { type: "text", text: typeof output["error"] === "string" ? output["error"] : JSON.stringify(output) },
        ],
        isError: state !== "completed",
      });
    }
    default:
      return { jsonrpc: "2.0", id, error: { code: -32_601, message: `There is no method ${method}.` } };
  }
}
