import type { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type IncomingHttpHeaders, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Readable } from "node:stream";
import { fromBinary, toBinary, type DescMessage, type DescMethodUnary, type MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJsonBytes, parseTimeout } from "@connectrpc/connect/protocol-connect";
import { joined, receivedHeader } from "./http-message.ts";
import { MESSAGE_BYTES_MAX, methodName, type Routes, type ServerOptions } from "./server-options.ts";
import { UnaryCall } from "./unary-call.ts";
import { UnaryImplementations } from "./unary-implementations.ts";

const CANCELED = new ConnectError("the client has cancelled the call", Code.Canceled);

/** A request, and how its response is sent, over HTTP/2 or HTTP/1.1. */
type Exchange = {
  readonly method: DescMethodUnary;
  readonly headers: IncomingHttpHeaders;
  readonly request: Readable;
  /** Emits `close` if the client has gone, and after the response. */
  readonly closing: EventEmitter;
  readonly send: (status: number, headers: OutgoingHttpHeaders, body: Uint8Array) => void;
};

/**
 * Serves Connect's unary calls in binary protobuf, which services and workers make, directly on Node's streams: a third
 * of the processor time of Connect's adapters or less (docs/decisions/0023-unary-calls-on-http-streams.md). All other
 * calls (streams, JSON, gRPC, compressed messages) are left to them.
 */
export class UnaryServer {
  readonly #implementations: UnaryImplementations;
  readonly #methods = new Map<string, DescMethodUnary>();
  readonly #running = new Set<UnaryCall>();
  readonly #prefix: string;

  /** Paths start with `prefix`. */
  constructor(options: ServerOptions, prefix = "") {
    this.#implementations = new UnaryImplementations(options);
    this.#prefix = prefix;
  }

  /** Wraps routes: their unary methods are served here. */
  recording(routes: Routes): Routes {
    const recording = this.#implementations.recording(routes);
    return (router) => {
      recording(router);
      for (const method of this.#implementations.methods)
        this.#methods.set(`${this.#prefix}/${methodName(method)}`, method as DescMethodUnary);
    };
  }

  /** Serves a stream of HTTP/2, or returns false if it is not such a call. */
  serveStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): boolean {
    const method = this.#methodOf(headers[":method"], headers[":path"], headers);
    if (!method) return false;
    stream.on("error", () => {}); // reported as the end of the stream
    const send: Exchange["send"] = (status, header, body) => sendOn(stream, { ":status": status, ...header }, body);
    void this.#respond({ method, headers, request: stream, closing: stream, send });
    return true;
  }

  /** Serves a request of HTTP/1.1, or returns false if it is not such a call. */
  serveRequest(request: IncomingMessage, response: ServerResponse): boolean {
    const { headers } = request;
    const method = this.#methodOf(request.method, request.url, headers);
    if (!method) return false;
    const send: Exchange["send"] = (status, header, body) =>
      response.writeHead(status, { ...header, "content-length": body.byteLength }).end(body);
    void this.#respond({ method, headers, request, closing: response, send });
    return true;
  }

  /** Notifies the implementations of all running calls. */
  abort(reason: ConnectError): void {
    for (const call of this.#running) call.abort(reason);
  }

  #methodOf(
    verb: string | undefined,
    path: string | undefined,
    headers: IncomingHttpHeaders,
  ): DescMethodUnary | undefined {
    const isBinary = headers["content-type"] === "application/proto" && headers["content-encoding"] === undefined;
    return verb === "POST" && isBinary ? this.#methods.get(path ?? "") : undefined;
  }

  async #respond({ method, headers, request, closing, send }: Exchange): Promise<void> {
    const timeout = parseTimeout(
      (headers["connect-timeout-ms"] as string | undefined) ?? null,
      Number.MAX_SAFE_INTEGER,
    );
    const call = new UnaryCall({ method, header: receivedHeader(headers), timeoutMs: timeout.timeoutMs });
    this.#running.add(call);
    closing.once("close", () => call.cancel(CANCELED)); // without effect after the response
    try {
      if (timeout.error) throw timeout.error;
      const { message } = await this.#implementations.call(call, method, async () =>
        parse(method, await receive(request)),
      );
      send(200, { "content-type": "application/proto", ...setBy(call) }, toBinary(method.output, message));
    } catch (cause) {
      const error = cause instanceof ConnectError ? cause : new ConnectError("internal error", Code.Internal);
      const header = { "content-type": "application/json", ...setBy(call) };
      send(codeToHttpStatus(error.code), header, errorToJsonBytes(error, undefined));
    } finally {
      this.#running.delete(call);
    }
  }
}

function parse<I extends DescMessage>({ input }: DescMethodUnary<I>, bytes: Uint8Array): MessageShape<I> {
  try {
    return fromBinary(input, bytes);
  } catch (cause) {
    throw new ConnectError("the message cannot be parsed", Code.InvalidArgument, undefined, undefined, cause);
  }
}

/** Reads the body of a request. Rejects with a ConnectError if it is too large or its sender has gone. */
function receive(stream: Readable): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    if (stream.readableEnded) resolve(new Uint8Array()); // an empty message ends before it is read
    else if (stream.destroyed) reject(CANCELED);
    const chunks: Buffer[] = [];
    let size = 0;
    stream.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= MESSAGE_BYTES_MAX) chunks.push(chunk);
      else reject(new ConnectError("the message is too large", Code.ResourceExhausted));
    });
    stream.once("end", () => resolve(joined(chunks)));
    stream.once("close", () => reject(CANCELED));
  });
}

function sendOn(stream: ServerHttp2Stream, headers: OutgoingHttpHeaders, body: Uint8Array): void {
  if (stream.destroyed || stream.closed) return;
  stream.respond({ ...headers, "content-length": body.byteLength });
  stream.end(body);
  // The rest of a body that was not read is refused, as the client may be waiting to send it.
  if (!stream.readableEnded && !stream.readableFlowing)
    stream.once("finish", () => stream.close(constants.NGHTTP2_NO_ERROR));
}

function setBy(call: UnaryCall): OutgoingHttpHeaders {
  const { header, trailer } = call.set;
  if (!header && !trailer) return {};
  return Object.fromEntries([
    ...(header ?? []),
    ...[...(trailer ?? [])].map(([name, value]) => [`trailer-${name}`, value]),
  ]);
}
