import type { Readable, Writable } from "node:stream";
import type { z } from "zod";
import { RESPONSES, parseResponse } from "./responses.ts";
import { SandboxGone, SandboxRefusal } from "./sandbox-errors.ts";
import { LineSplitter } from "./init/lines.ts";
import type { Request } from "./init/protocol.ts";

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;
type RequestContent = DistributiveOmit<Request, "id">;
type Waiting = { schema: z.ZodType; resolve(value: unknown): void; reject(error: Error): void };

/**
 * Sends requests to `sandbox-init` and receives its responses, over two streams. A line that violates the protocol
 * closes the channel.
 */
export class Channel {
  readonly #input: Writable;
  readonly #waiting = new Map<number, Waiting>();
  readonly #onBroken: () => void;
  #lastId = 0;
  #closed: SandboxGone | undefined;

  constructor(input: Writable, output: Readable, onBroken: () => void) {
    this.#input = input;
    this.#onBroken = onBroken;
    const lines = new LineSplitter();
    output.on("data", (chunk: Buffer) => {
      try {
        lines.push(chunk).forEach((line) => this.#receive(line));
      } catch (error) {
        this.close(new SandboxGone("The sandbox violated the protocol and was ended.", error));
        this.#onBroken();
      }
    });
    input.on("error", () => undefined); // the end of the process reports the fault
  }

  /**
   * Sends a request. Returns its id and its validated response, which rejects with `SandboxRefusal` or `SandboxGone`.
   */
  request<Op extends keyof typeof RESPONSES>(
    content: Extract<RequestContent, { op: Op }>,
  ): { id: number; response: Promise<z.output<(typeof RESPONSES)[Op]>> } {
    const id = (this.#lastId += 1);
    const response = new Promise<unknown>((resolve, reject) => {
      if (this.#closed) return reject(this.#closed);
      this.#waiting.set(id, { schema: RESPONSES[content.op], resolve, reject });
      this.#input.write(`${JSON.stringify({ id, ...content })}\n`);
    });
    return { id, response: response as Promise<z.output<(typeof RESPONSES)[Op]>> };
  }

  /** Closes the input, so that `sandbox-init` exits by itself. */
  end(): void {
    this.#input.end();
  }

  /** Rejects all pending and later requests. */
  close(reason: SandboxGone): void {
    this.#closed ??= reason;
    for (const waiting of this.#waiting.values()) waiting.reject(this.#closed);
    this.#waiting.clear();
  }

  #receive(line: string): void {
    if (this.#closed) return;
    const message = parseResponse(line);
    const waiting = this.#waiting.get(message.id);
    if (!waiting) throw new Error("A response without a pending request.");
    // an invalid value leaves the request pending, so that close() rejects it
    const value = message.ok ? waiting.schema.parse(message.value) : undefined;
    this.#waiting.delete(message.id);
    if (message.ok) waiting.resolve(value);
    else waiting.reject(new SandboxRefusal(message.code, message.message));
  }
}
