import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { CallToolResult, Tool as ServerTool } from "@modelcontextprotocol/sdk/types.js";
import type { guardedFetch } from "../egress/guarded-fetch.ts";
import type { Program } from "../sandbox/commands.ts";
import { SandboxTransport } from "./sandbox-transport.ts";
import type { ServerSettings } from "./server-settings.ts";

export type McpLimits = {
  /** The timeout of the handshake and the list of tools. */
  readonly startMs: number;
  /** The timeout of one call. */
  readonly callMs: number;
};

export const MCP_LIMITS: McpLimits = { startMs: 30_000, callMs: 300_000 };

const PAGES_MAX = 10;

export type ConnectionDeps = {
  readonly open: (argv: readonly string[], env: Readonly<Record<string, string>>) => Program;
  readonly fetch: ReturnType<typeof guardedFetch>;
  /** Throws `SandboxGone` if the sandbox has ended, so that a missing response has that cause. */
  readonly assertAlive: () => Promise<void>;
  readonly limits: McpLimits;
};

/** An initialized connection to a server. */
export class Connection {
  readonly tools: readonly ServerTool[];
  readonly transport: string;
  readonly #client: Client;
  readonly #limits: McpLimits;
  readonly #ending: () => string | undefined;
  #isClosed = false;

  private constructor(
    client: Client,
    options: { tools: readonly ServerTool[]; transport: string; limits: McpLimits; ending: () => string | undefined },
  ) {
    this.#client = client;
    this.tools = options.tools;
    this.transport = options.transport;
    this.#limits = options.limits;
    this.#ending = options.ending;
    client.onclose = () => (this.#isClosed = true);
  }

  /**
   * Connects, performs the handshake and lists the tools. Throws an error with a message for users, or the reason of
   * `signal`.
   */
  static async open(settings: ServerSettings, deps: ConnectionDeps, signal: AbortSignal): Promise<Connection> {
    if (settings.transport === "stdio") {
      const transport = new SandboxTransport(deps.open(settings.argv, settings.env));
      return Connection.#over(transport, "stdio", deps, signal, () => transport.ending);
    }
    const { url, headers } = settings;
    const options = { fetch: deps.fetch, requestInit: { headers: { ...headers } } };
    try {
      const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
      // The stream of unsolicited messages of a server is not opened: the only streams are responses.
      const withoutUnsolicited: typeof deps.fetch = (target, init) =>
        init?.method === "GET" ? Promise.resolve(new Response(null, { status: 405 })) : deps.fetch(target, init);
      return await Connection.#over(
        new StreamableHTTPClientTransport(new URL(url), { ...options, fetch: withoutUnsolicited }),
        "http",
        deps,
        signal,
      );
    } catch (error) {
      if (!isOlder(error)) throw error;
      const { SSEClientTransport } = await import("@modelcontextprotocol/sdk/client/sse.js");
      return await Connection.#over(new SSEClientTransport(new URL(url), options), "sse", deps, signal);
    }
  }

  static async #over(
    transport: Transport,
    name: string,
    { limits }: ConnectionDeps,
    signal: AbortSignal,
    ending: () => string | undefined = () => undefined,
  ): Promise<Connection> {
    const [{ Client: SdkClient }, { ListToolsResultSchema }] = await Promise.all([
      import("@modelcontextprotocol/sdk/client/index.js"),
      import("@modelcontextprotocol/sdk/types.js"),
    ]);
    const client = new SdkClient({ name: "millwright", version: "1.0.0" });
    const request = { timeout: limits.startMs, maxTotalTimeout: limits.startMs, signal };
    try {
      await client.connect(transport, request);
      const tools: ServerTool[] = [];
      let cursor: string | undefined;
      for (let page = 0; page < PAGES_MAX && client.getServerCapabilities()?.tools; page += 1) {
        const listed = await client.request(
          { method: "tools/list", params: cursor === undefined ? {} : { cursor } },
          ListToolsResultSchema,
          request,
        );
        tools.push(...listed.tools);
        if ((cursor = listed.nextCursor) === undefined) break;
      }
      return new Connection(client, { tools, transport: name, limits, ending });
    } catch (error) {
      const why = ending();
      await client.close().catch(() => undefined);
      signal.throwIfAborted();
      throw why === undefined ? error : new Error(why, { cause: error });
    }
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Calls a tool by the server's own name. Only the shape of the result is validated. Throws an error with a message
   * for users.
   */
  async call(name: string, input: Record<string, unknown>, signal: AbortSignal): Promise<CallToolResult> {
    const { CallToolResultSchema } = await import("@modelcontextprotocol/sdk/types.js");
    try {
      return await this.#client.request(
        { method: "tools/call", params: { name, arguments: input } },
        CallToolResultSchema,
        { timeout: this.#limits.callMs, maxTotalTimeout: this.#limits.callMs, signal },
      );
    } catch (error) {
      const why = this.#ending();
      throw why === undefined ? error : new Error(why, { cause: error });
    }
  }

  async close(): Promise<void> {
    await this.#client.close().catch(() => undefined);
  }
}

/** Returns whether a server supports only the older SSE protocol, in which the client first opens an event stream. */
const isOlder = (error: unknown): boolean =>
  [400, 404, 405].includes(Number((error as { code?: unknown } | undefined)?.code));
