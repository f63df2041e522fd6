import { constants, type IncomingHttpHeaders, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { fromBinary, toBinary, type DescMessage, type DescMethodUnary, type MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJsonBytes, parseTimeout } from "@connectrpc/connect/protocol-connect";
import { MESSAGE_BYTES_MAX, methodName, type Routes, type ServerOptions } from "./server-options.ts";
import { UnaryCall } from "./unary-call.ts";
import { UnaryImplementations } from "./unary-implementations.ts";

const CANCELED = new ConnectError("the client has cancelled the call", Code.Canceled);

/**
 * Serves the calls that the services make to each other, Connect's unary calls in binary protobuf, directly on Node's
 * HTTP/2 streams: a fifth of the processor time of Connect's adapters (docs/performance.md). All other calls (streams,
 * JSON, gRPC, compressed messages) are left to them.
 */
export class UnaryServer {
  readonly #implementations: UnaryImplementations;
  readonly #methods = new Map<string, DescMethodUnary>();
  readonly #running = new Set<UnaryCall>();

  constructor(options: ServerOptions) {
    this.#implementations = new UnaryImplementations(options);
  }

  /** Wraps routes: their unary methods are served here. */
  recording(routes: Routes): Routes {
    const recording = this.#implementations.recording(routes);
    return (router) => {
      recording(router);
      for (const method of this.#implementations.methods)
        this.#methods.set(`/${methodName(method)}`, method as DescMethodUnary);
    };
  }

  /** Serves a stream, or returns false if it is not such a call. */
  serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): boolean {
    const method = this.#methods.get(headers[":path"] as string);
    if (
      method === undefined ||
      headers[":method"] !== "POST" ||
      headers["content-type"] !== "application/proto" ||
      headers["content-encoding"] !== undefined
    )
      return false;
    stream.on("error", () => {}); // reported as the end of the stream
    void this.#respond(stream, headers, method);
    return true;
  }

  /** Notifies the implementations of all running calls. */
  abort(reason: ConnectError): void {
    for (const call of this.#running) call.abort(reason);
  }

  async #respond(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, method: DescMethodUnary): Promise<void> {
    const timeout = parseTimeout(
      (headers["connect-timeout-ms"] as string | undefined) ?? null,
      Number.MAX_SAFE_INTEGER,
    );
    const call = new UnaryCall({ method, header: webHeader(headers), timeoutMs: timeout.timeoutMs });
    this.#running.add(call);
    stream.once("close", () => call.cancel(CANCELED)); // without effect after the response
    try {
      if (timeout.error) throw timeout.error;
      const { message } = await this.#implementations.call(call, method, async () =>
        parse(method, await receive(stream)),
      );
      send(stream, 200, { "content-type": "application/proto", ...setBy(call) }, toBinary(method.output, message));
    } catch (cause) {
      const error = cause instanceof ConnectError ? cause : new ConnectError("internal error", Code.Internal);
      send(
        stream,
        codeToHttpStatus(error.code),
        { "content-type": "application/json", ...setBy(call) },
        errorToJsonBytes(error, undefined),
      );
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
function receive(stream: ServerHttp2Stream): Promise<Uint8Array> {
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

/** Returns the bytes as plain `Uint8Array`, as which messages return their fields. */
export function joined(chunks: readonly Buffer[]): Uint8Array {
  const { buffer, byteOffset, byteLength } = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function send(stream: ServerHttp2Stream, status: number, headers: OutgoingHttpHeaders, body: Uint8Array): void {
  if (stream.destroyed || stream.closed) return;
  stream.respond({ ":status": status, ...headers, "content-length": body.byteLength });
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

const webHeader = (headers: IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).filter(
      (entry): entry is [string, string] => typeof entry[1] === "string" && !entry[0].startsWith(":"),
    ),
  );
