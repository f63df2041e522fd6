import { constants, type ClientHttp2Stream, type IncomingHttpHeaders } from "node:http2";
import {
  create,
  fromBinary,
  isMessage,
  toBinary,
  type DescMessage,
  type DescMethodUnary,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import { Code, ConnectError, type UnaryResponse } from "@connectrpc/connect";
import type { Http2SessionManager } from "@connectrpc/connect-node";
import { codeFromHttpStatus, errorFromJsonBytes, trailerDemux } from "@connectrpc/connect/protocol-connect";
import { isUnreachable } from "./errors.ts";
import { joined, receivedHeader } from "./http-message.ts";
import { plainHeader } from "./in-process-callers.ts";
import { methodName } from "./server-options.ts";
import { deadlineTimer } from "./unary-call.ts";

export type UnaryCallOptions<I extends DescMessage, O extends DescMessage> = {
  readonly method: DescMethodUnary<I, O>;
  readonly header: ConstructorParameters<typeof Headers>[0];
  readonly input: MessageInitShape<I>;
  readonly signal: AbortSignal | undefined;
  /** Absent: no deadline. */
  readonly timeoutMs: number | undefined;
};

/**
 * Makes a unary call of the Connect protocol in binary protobuf on an HTTP/2 session, without Connect's adapters: see
 * `UnaryServer`. Rejects with a ConnectError.
 */
export async function callUnary<I extends DescMessage, O extends DescMessage>(
  sessions: Http2SessionManager,
  { method, header, input, signal, timeoutMs }: UnaryCallOptions<I, O>,
): Promise<UnaryResponse<I, O>> {
  const body = toBinary(method.input, isMessage(input, method.input) ? input : create(method.input, input));
  const stream = await sessions.request(
    "POST",
    `/${methodName(method)}`,
    {
      ...plainHeader(header),
      "content-type": "application/proto",
      "connect-protocol-version": "1",
      ...(timeoutMs === undefined ? {} : { "connect-timeout-ms": String(timeoutMs) }),
    },
    {},
  );
  const { headers, bytes } = await responseOf(stream, { body, signal, timeoutMs, sessions });
  const status = Number(headers[":status"]);
  if (status !== 200) throw failureOf(status, headers, bytes);
  if (headers["content-type"] !== "application/proto")
    throw new ConnectError(`the response has the type ${headers["content-type"]}`, Code.Internal);
  return {
    stream: false,
    service: method.parent,
    method,
    message: fromBinary(method.output, bytes),
    get header() {
      return trailerDemux(new Headers(receivedHeader(headers)))[0];
    },
    get trailer() {
      return trailerDemux(new Headers(receivedHeader(headers)))[1];
    },
  };
}

type Response = { readonly headers: IncomingHttpHeaders; readonly bytes: Uint8Array };

function responseOf(
  stream: ClientHttp2Stream,
  {
    body,
    signal,
    timeoutMs,
    sessions,
  }: Pick<UnaryCallOptions<DescMessage, DescMessage>, "signal" | "timeoutMs"> & {
    body: Uint8Array;
    sessions: Http2SessionManager;
  },
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let headers: IncomingHttpHeaders = {};
    let hasResponse = false;
    const giveUp = (error: ConnectError): void => {
      reject(error);
      stream.close(constants.NGHTTP2_CANCEL);
    };
    const cancel = (): void => giveUp(ConnectError.from(signal?.reason, Code.Canceled));
    const timer = deadlineTimer(timeoutMs, giveUp);
    signal?.addEventListener("abort", cancel);
    stream.once("response", (received) => (headers = received));
    stream.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      sessions.notifyResponseByteRead(stream);
    });
    stream.once("end", () => {
      hasResponse = headers[":status"] !== undefined && stream.rstCode === constants.NGHTTP2_NO_ERROR;
      if (hasResponse) resolve({ headers, bytes: joined(chunks) });
    });
    stream.on("error", (error) => reject(lost(stream, error)));
    stream.once("close", () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
      if (!hasResponse) reject(lost(stream, undefined));
    });
    if (signal?.aborted) cancel();
    else stream.end(body);
  });
}

const CODE_OF_RESET: Readonly<Record<number, Code>> = {
  [constants.NGHTTP2_REFUSED_STREAM]: Code.Unavailable,
  [constants.NGHTTP2_CANCEL]: Code.Canceled,
  [constants.NGHTTP2_ENHANCE_YOUR_CALM]: Code.ResourceExhausted,
};

/**
 * Returns the error of a call whose stream ended without a complete response; Node.js reports missing bytes as a protocol
 * error. Errors of a service are responses, so every other reset is one of the connection.
 */
function lost({ rstCode }: ClientHttp2Stream, cause: unknown): ConnectError {
  if (cause instanceof ConnectError) return cause;
  const code = isUnreachable(cause) ? Code.Unavailable : (CODE_OF_RESET[rstCode ?? 0] ?? Code.Aborted);
  return new ConnectError("the call ended without a response", code, undefined, undefined, cause);
}

/** Returns the error of a response: the service's own, or one for the status of a proxy or of another server. */
function failureOf(status: number, headers: IncomingHttpHeaders, bytes: Uint8Array): ConnectError {
  const fallback = new ConnectError(`HTTP ${status}`, codeFromHttpStatus(status));
  return headers["content-type"] === "application/json"
    ? errorFromJsonBytes(bytes, new Headers(receivedHeader(headers)), fallback)
    : fallback;
}
