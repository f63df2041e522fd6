import { randomBytes } from "node:crypto";
import { STATUS_CODES, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { invalidArgument, problemOf } from "@millwright/errors";

/** Maximum bytes of request line and headers together, enforced by Node.js. */
export const REQUEST_HEAD_BYTES_MAX = 16 * 1024;

/** How long the rest of an unreadable request is read, so that its sender receives the response. */
const LINGER_MS = 2_000;

/**
 * Responds to a request that the HTTP parser rejected with problem+json, unless a response has started or the sender is
 * gone.
 */
export function answerUnreadable(error: NodeJS.ErrnoException, socket: Duplex): void {
  const { _httpMessage: underWay } = socket as Duplex & { _httpMessage?: ServerResponse };
  if (error.code === "ECONNRESET" || !socket.writable || underWay?.headersSent) return void socket.destroy(error);
  const { status, headers, body } = problemOf(problemFor(error), {
    publicUrl: "",
    path: "",
    traceId: randomBytes(16).toString("hex"),
    isUnrepeatable: false,
  });
  const text = JSON.stringify(body);
  const head = { ...headers, "content-length": String(Buffer.byteLength(text)), connection: "close" };
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${Object.entries(head)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join("")}\r\n${text}`,
  );
  const linger = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(linger));
  socket.resume();
}

const problemFor = ({ code }: NodeJS.ErrnoException) =>
  code === "HPE_HEADER_OVERFLOW"
    ? invalidArgument(
        "request_head_too_large",
        `The request line and the headers must have at most ${REQUEST_HEAD_BYTES_MAX} bytes together. Shorten the query string, or send fewer headers.`,
      )
    : code === "ERR_HTTP_REQUEST_TIMEOUT"
      ? invalidArgument("request_incomplete", "Timed out while reading the request.")
      : invalidArgument("malformed_request", "The request is not valid HTTP/1.1.");
