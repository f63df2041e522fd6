import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import { LineSplitter } from "../sandbox/init/lines.ts";
import type { Program } from "../sandbox/sandbox.ts";
import { lastLines } from "../sandbox/last-lines.ts";

/** What a server may say until it has answered what it was asked. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Messages with a server that runs in the sandbox: JSON lines. It is listened to only while it owes an answer, so one that talks on its own
 * waits for itself. Everything it says may be the agent's: a line that is too long, or too many, end the connection.
 */
export class SandboxTransport implements Transport {
  onmessage?: <T extends JSONRPCMessage>(message: T) => void;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  readonly #program: Program;
  readonly #lines = new LineSplitter();
  readonly #owed = new Set<string | number>();
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

  /** Why the connection is over, for people; undefined while it is not. */
  get ending(): string | undefined {
    return this.#ending;
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if ("method" in message && "id" in message) this.#owed.add(message.id);
    if ("method" in message && message.method === "notifications/cancelled")
      this.#owed.delete((message.params as { requestId?: string | number } | undefined)?.requestId ?? "");
    this.#bytes = 0;
    void this.#listen();
    await this.#program.put(Buffer.from(`${JSON.stringify(message)}\n`)).catch(async (error: unknown) => {
      await this.#program.ended.catch(() => undefined); // which tells more
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
      while (this.#owed.size > 0 && this.#ending === undefined) {
        const data = await this.#program.take();
        if (!data) break; // its end tells why
        this.#receive(data);
      }
    } catch (error) {
      this.#end(error instanceof Error ? error.message : "It cannot be understood.");
      await this.#program.stop().catch(() => undefined);
    } finally {
      this.#isListening = false;
    }
  }

  /** Errors: throws for what ends the connection. A line that is no message is left out: programs print things. */
  #receive(data: Buffer): void {
    this.#bytes += data.length;
    if (this.#bytes > ANSWER_BYTES_MAX) throw new Error("It was ended: it said too much without an answer.");
    for (const line of this.#lines.push(data)) {
      const message = parse(line);
      if (!message) continue;
      if ("id" in message && !("method" in message) && message.id !== undefined) this.#owed.delete(message.id);
      this.onmessage?.(message);
    }
  }

  #end(why: string): void {
    if (this.#ending !== undefined) return;
    this.#ending = why;
    this.onclose?.();
  }
}

/** The protocol judges the shape of a message; here it only has to be an object. */
function parse(line: string): JSONRPCMessage | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JSONRPCMessage) : undefined;
  } catch {
    return undefined;
  }
}
