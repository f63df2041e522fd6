import type { worker } from "@millwright/contracts";
import { SandboxGone } from "../sandbox/sandbox-errors.ts";
import { ToolFailure } from "../tools/tool-failure.ts";
import { Connection, type ConnectionDeps } from "./connection.ts";
import { shownResult, type Shown } from "./shown-result.ts";
import { serverSettings } from "./server-settings.ts";

/** The maximum number of starts of a server per execution. A call restarts an ended server. */
const STARTS_MAX = 4;

/** One MCP server of an execution. Its failures affect only its own calls. */
export class McpServer {
  readonly name: string;
  readonly #server: worker.McpServer;
  readonly #known: Readonly<Record<string, string>>;
  readonly #deps: ConnectionDeps;
  #connection: Promise<Connection> | undefined;
  #starts = 0;

  constructor(server: worker.McpServer, known: Readonly<Record<string, string>>, deps: ConnectionDeps) {
    this.name = server.name;
    this.#server = server;
    this.#known = known;
    this.#deps = deps;
  }

  /**
   * Returns the open connection, or opens one. Throws an error with a message for users, `SandboxGone` or the reason of
   * `signal`.
   */
  async connect(signal: AbortSignal): Promise<Connection> {
    const present = await this.#connection?.catch(() => undefined);
    if (present && !present.isClosed) return present;
    if (this.#starts >= STARTS_MAX) throw new Error(`It has ended ${STARTS_MAX} times and is not restarted.`);
    this.#starts += 1;
    const connection = Connection.open(serverSettings(this.#server, this.#known), this.#deps, signal);
    this.#connection = connection;
    return connection;
  }

  /** Calls a tool. Throws `ToolFailure`, `SandboxGone` or the reason of `signal`. */
  async call(
    tool: string,
    input: Record<string, unknown>,
    mask: (text: string) => string,
    signal: AbortSignal,
  ): Promise<Shown> {
    try {
      const connection = await this.connect(signal);
      const shown = shownResult(await connection.call(tool, input, signal), mask);
      if (!shown.isError) return shown;
      throw new ToolFailure(shown.output.text ?? "The tool failed and gave no reason.");
    } catch (error) {
      if (error instanceof ToolFailure || error instanceof SandboxGone) throw error;
      signal.throwIfAborted();
      await this.#deps.assertAlive();
      throw new ToolFailure(mask(`The MCP server ${this.name} did not respond: ${reasonOf(error)}`));
    }
  }

  async close(): Promise<void> {
    await (await this.#connection?.catch(() => undefined))?.close();
  }
}

const TEXT_MAX = 2_000;

/** Returns the message of an error and of its cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown error";
  const cause =
    error.cause instanceof Error && !error.message.includes(error.cause.message) ? ` (${error.cause.message})` : "";
  return `${error.message || error.name}${cause}`.slice(0, TEXT_MAX);
}
