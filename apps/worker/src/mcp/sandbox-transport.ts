import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import { LineSplitter } from "../sandbox/init/lines.ts";
import type { Program } from "../sandbox/commands.ts";
import { lastLines } from "../sandbox/last-lines.ts";

/** The maximum output of a server before its pending response. */
const RESPONSE_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Exchanges JSON lines with a server that runs in the sandbox. Its output is read only while a response is pending, so
 * a server that writes unsolicited messages blocks on its own pipe. The agent may have forged any output: a line that
 * is too long, or too much output, ends the connection.
 */
export class SandboxTransport implements Transport {
  onmessage?: <T extends JSONRPCMessage>(message: T) => void;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  readonly #program: Program;
  readonly #lines = new LineSplitter();
  readonly #pendingIds = new Set<string | number>();
  #bytes = 0;
  #isListening = false;
  #ending: string | undefined;

  constructor(program: Program) {
    this.#program = program;
    program.ended.then(
      ({ exitCode, signal, errors }) =>
        this.#end(
          `It has ended (${signal ?? `exit code ${exitCode}`})${errors === "" ? "." : `: ${lastLines(errors)}`}`,
        ),
      (error: Error) => this.#end(error.message),
    );
  }

  /** Why the connection has ended, for users; undefined while it is open. */
  get ending(): string | undefined {
    return this.#ending;
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if ("method" in message && "id" in message) this.#pendingIds.add(message.id);
    if ("method" in message && message.method === "notifications/cancelled")
      this.#pendingIds.delete((message.params as { requestId?: string | number } | undefined)?.requestId ?? "");
    this.#bytes = 0;
    void this.#listen();
    await this.#program.put(Buffer.from(`${JSON.stringify(message)}\n`)).catch(async (error: unknown) => {
      await this.#program.ended.catch(() => undefined); // the program's end contains more information
      throw error;
    });
  }

  async close(): Promise<void> {
    this.#end("It was closed.");
    await this.#program.stop().catch(() => undefined);
  }

  async #listen(): Promise<void> {
    if (this.#isListening) return;
    this.#isListening = true;
    try {
      while (this.#pendingIds.size > 0 && this.#ending === undefined) {
        const data = await this.#program.take();
        if (!data) break; // the program's end contains the reason
        this.#receive(data);
      }
    } catch (error) {
      this.#end(error instanceof Error ? error.message : "Its output is invalid.");
      await this.#program.stop().catch(() => undefined);
    } finally {
      this.#isListening = false;
    }
  }

  /**
   * Handles output of the server. Throws if the output ends the connection. A line that is not a message is ignored,
   * because programs print other text.
   */
  #receive(data: Buffer): void {
    this.#bytes += data.length;
    if (this.#bytes > RESPONSE_BYTES_MAX) throw new Error("It was ended: it wrote too much without a response.");
    for (const line of this.#lines.push(data)) {
      const message = parse(line);
      if (!message) continue;
      if ("id" in message && !("method" in message) && message.id !== undefined) this.#pendingIds.delete(message.id);
      this.onmessage?.(message);
    }
  }

  #end(why: string): void {
    if (this.#ending !== undefined) return;
    this.#ending = why;
    this.onclose?.();
  }
}

/** Parses a line. The protocol library validates the shape of a message; here it only has to be an object. */
function parse(line: string): JSONRPCMessage | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JSONRPCMessage) : undefined;
  } catch {
    return undefined;
  }
}
