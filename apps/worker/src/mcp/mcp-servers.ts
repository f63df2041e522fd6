import type { JsonObject } from "@bufbuild/protobuf";
import type { Tool as ServerTool } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import { Denials } from "../egress/denials.ts";
import { guardedFetch } from "../egress/guarded-fetch.ts";
import { EgressPolicy, NO_EGRESS } from "../egress/policy.ts";
import type { ExecutionContext } from "../context/execution-context.ts";
import { hostOf } from "../sandbox/spec.ts";
import { defineTool, type Tool, type Workspace } from "../tools/tool.ts";
import { MCP_LIMITS, type Connection, type ConnectionDeps, type McpLimits } from "./connection.ts";
import { McpServer, reasonOf } from "./mcp-server.ts";
import { distinctName, mcpToolName } from "../model/mcp-tool-names.ts";
import type { Fields } from "../model/event-fields.ts";

/** Limits of the tool descriptions: the number of tools per server and in total, and the size of each. */
const TOOLS_MAX = 100;
const TOOLS_ALL_MAX = 200;
const DESCRIPTION_CHARACTERS_MAX = 4_000;
const SCHEMA_BYTES_MAX = 16 * 1024;
/** The maximum size of an HTTP response, including a stream of responses. */
const HTTP_BYTES_MAX = 16 * 1024 * 1024;

export type McpTools = {
  readonly tools: readonly Tool[];
  /** Messages for the agent about servers that are not available. */
  readonly notices: readonly string[];
  /** Closes all connections and ends the programs of the servers. */
  readonly close: () => Promise<void>;
};

export type McpDeps = {
  readonly ctx: ExecutionContext;
  /** Receives the events of the run. */
  readonly conversation: { readonly record: (kind: string, payload: Fields) => void };
  readonly workspace: Workspace;
  readonly limits?: McpLimits;
};

/**
 * Starts the MCP servers of the run's configuration concurrently: commands in the sandbox, and URLs through the worker
 * to hosts that the run may connect to. If a server fails, the run continues without its tools, and the run's events
 * and the agent state this. Throws `SandboxGone` or the abort reason.
 */
export async function openMcpServers({
  ctx,
  conversation,
  workspace,
  limits = MCP_LIMITS,
}: McpDeps): Promise<McpTools> {
  const { mcpServers, env, secrets, egress } = ctx.assignment;
  if (mcpServers.length === 0) return { tools: [], notices: [], close: () => Promise.resolve() };
  const denials = new Denials((payload) => conversation.record("egress_denied", payload));
  const policy = new EgressPolicy(hostOf(ctx.sandbox).egress ?? NO_EGRESS, egress?.allowedHosts);
  const deps: ConnectionDeps = {
    open: (argv, serverEnv) => workspace.sandbox.open(argv, { cwd: workspace.base, env: { ...serverEnv } }),
    fetch: guardedFetch({
      policy,
      gate: ctx.gate,
      onDenied: (denial) => denials.add(denial),
      bytesMax: HTTP_BYTES_MAX,
    }),
    assertAlive: async () => void (await workspace.sandbox.stat(workspace.sandbox.workspace, ".")),
    limits,
  };
  const servers = mcpServers.map((server) => new McpServer(server, { ...env, ...secrets }, deps));
  const tools: Tool[] = [];
  const notices: string[] = [];
  const close = async () => void (await Promise.all(servers.map((server) => server.close())));
  const opened = await Promise.all(
    servers.map((server) => server.connect(ctx.signal).catch((error: unknown) => ({ error }))),
  );
  for (const [index, server] of servers.entries()) {
    const connection = opened[index]!;
    if ("error" in connection) {
      ctx.signal.throwIfAborted();
      await deps.assertAlive();
      notices.push(`The MCP server ${server.name} could not be started; its tools are missing.`);
      conversation.record("mcp_server_failed", {
        server: server.name,
        text: `The MCP server ${server.name} could not be started, so the agent works without its tools: ${reasonOf(connection.error)}`,
      });
      continue;
    }
    tools.push(...offered(server, connection, tools, { ctx, conversation }));
  }
  return { tools, notices, close };
}

/** Returns the tools of a server that fit within the limits, and records them in the run's events. */
function offered(
  server: McpServer,
  { tools: serverTools, transport }: Connection,
  before: readonly Tool[],
  { ctx, conversation }: Pick<McpDeps, "ctx" | "conversation">,
): Tool[] {
  const offeredTools: Tool[] = [];
  const omitted: string[] = [];
  const usedNames = new Set(before.map(({ name }) => name));
  for (const tool of serverTools) {
    const exceedsLimit =
      offeredTools.length >= TOOLS_MAX ||
      before.length + offeredTools.length >= TOOLS_ALL_MAX ||
      Buffer.byteLength(JSON.stringify(tool.inputSchema)) > SCHEMA_BYTES_MAX;
    const defaultName = mcpToolName(server.name, tool.name);
    const name = usedNames.has(defaultName) ? distinctName(defaultName, server.name, tool.name) : defaultName;
    if (exceedsLimit || usedNames.has(name)) omitted.push(tool.name.slice(0, 100));
    else {
      usedNames.add(name);
      offeredTools.push(asTool(server, tool, name, transport, (text) => ctx.mask(text)));
    }
  }
  conversation.record("mcp_server_started", {
    server: server.name,
    transport,
    tools: offeredTools.map(({ name }) => name),
    left_out: omitted.length > 0 ? omitted.slice(0, TOOLS_MAX) : undefined,
  });
  return offeredTools;
}

/** Returns a server's tool. The server's own annotations (read-only, idempotent) are not trusted. */
const asTool = (
  server: McpServer,
  tool: ServerTool,
  name: string,
  transport: string,
  mask: (text: string) => string,
): Tool =>
  defineTool({
    name,
    action: name,
    category: "integration",
    description: mask(tool.description ?? "").slice(0, DESCRIPTION_CHARACTERS_MAX),
    isReadOnly: false,
    changes: transport === "stdio" ? "anything" : "nothing",
    isRepeatable: false,
    input: z.looseObject({}),
    inputSchema: tool.inputSchema as JsonObject,
    shown: (input) => input as JsonObject,
    run: async (input, { signal }) => ({ output: (await server.call(tool.name, input, mask, signal)).output }),
  });
