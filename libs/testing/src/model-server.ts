import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { WIRE_FORMATS, type WholeAnswer, type WireName } from "./model-wires.ts";

/**
 * The response to a call: an answer, an error, no response, or one that ends in the middle, with or without a broken
 * connection.
 */
export type ModelAnswer =
  | (WholeAnswer & { /** It ends not before this. */ readonly until?: Promise<unknown> })
  | { readonly status: number; readonly message?: string; readonly retryAfter?: number }
  | "hang"
  | "cut"
  | "reset";

export type ModelRequest = {
  readonly wire: WireName;
  readonly model: string;
  readonly key: string | undefined;
  readonly body: Record<string, any>;
};

/** A fake AI provider on this machine: the four APIs, streamed, with the test's answers. */
export class ModelServer {
  readonly requests: ModelRequest[] = [];
  /** The response of `GET /v1/models`. */
  models: readonly string[] = ["served-model", "other-model"];
  /** Calls whose client closed the connection before the end of the response. */
  readonly abandoned: ModelRequest[] = [];
  readonly #server: Server;
  readonly #answer: (request: ModelRequest, index: number) => ModelAnswer;

  private constructor(answer: (request: ModelRequest, index: number) => ModelAnswer) {
    this.#answer = answer;
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  /**
   * @param answer the answer of the call with this index, from 0; or a list of answers, the last of which is repeated
   */
  static async start(
    answer: readonly ModelAnswer[] | ((request: ModelRequest, index: number) => ModelAnswer),
  ): Promise<ModelServer> {
    const server = new ModelServer(
      typeof answer === "function" ? answer : (_request, index) => answer[Math.min(index, answer.length - 1)]!,
    );
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (request.method === "GET" && request.url === "/v1/models") {
      return void response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ object: "list", data: this.models.map((id) => ({ id, object: "model" })) }));
    }
    const modelRequest = readRequest(request, Buffer.concat(chunks).toString());
    if (!modelRequest)
      return void response
        .writeHead(404, { "content-type": "application/json" })
        .end(JSON.stringify({ error: { message: `Unknown path ${request.url}.` } }));
    const answer = this.#answer(modelRequest, this.requests.push(modelRequest) - 1);
    response.once("close", () => response.writableEnded || this.abandoned.push(modelRequest));
    if (answer === "hang") return;
    if (typeof answer === "object" && "status" in answer) {
      const { status, message = "No.", retryAfter } = answer;
      response.writeHead(status, {
        "content-type": "application/json",
        ...(retryAfter === undefined ? {} : { "retry-after": String(retryAfter) }),
      });
      return void response.end(
        JSON.stringify({ type: "error", error: { type: "api_error", message, code: status, status: "ERROR" } }),
      );
    }
    const { beginning, ending } = WIRE_FORMATS[modelRequest.wire](
      typeof answer === "string" ? { text: "It begins, and", usage: { input: 5, output: 3 } } : answer,
      modelRequest.model,
    );
    const write = ([event, data]: readonly [string, object | string]) =>
      response.write(
        `${event === "" ? "" : `event: ${event}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`,
      );
    response.writeHead(200, { "content-type": "text/event-stream" });
    beginning.forEach(write);
    if (answer === "reset") return void setImmediate(() => response.destroy());
    if (typeof answer === "object") await answer.until;
    if (answer !== "cut") ending.forEach(write);
    response.end();
  }
}

function readRequest({ url = "", headers }: IncomingMessage, text: string): ModelRequest | undefined {
  const { pathname } = new URL(url, "http://x");
  const body = (text === "" ? {} : JSON.parse(text)) as Record<string, any>;
  const bearer = headers.authorization?.replace(/^Bearer /, "");
  const firstOf = (header: string | string[] | undefined) => (Array.isArray(header) ? header[0] : header);
  if (pathname === "/v1/messages")
    return { wire: "anthropic", model: body["model"], key: firstOf(headers["x-api-key"]), body };
  if (pathname === "/v1/responses") return { wire: "openai", model: body["model"], key: bearer, body };
  if (pathname === "/v1/chat/completions")
    return { wire: "openai-compatible", model: body["model"], key: bearer, body };
  const model = /^\/v1beta\/models\/(.+):streamGenerateContent$/.exec(pathname)?.[1];
  return model === undefined ? undefined : { wire: "google", model, key: firstOf(headers["x-goog-api-key"]), body };
}
