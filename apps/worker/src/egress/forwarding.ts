import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream";
import { gatedPipe, type IsOpen } from "./gated-pipe.ts";

/** Headers of the connection, not of the message (RFC 9110 §7.6.1). */
const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Returns headers without those of the connection and without those that `Connection` lists. */
export function forwarded(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const named = (headers.connection ?? "")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim());
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name) && !named.includes(name)));
}

/** Forwards a request and its response. A failure of one side ends the other. */
export function forward(
  request: IncomingMessage,
  response: ServerResponse,
  upstream: ClientRequest,
  isOpen: IsOpen,
): void {
  upstream.on("error", () =>
    response.headersSent ? response.destroy() : respondText(response, 502, "The host did not respond."),
  );
  upstream.on("response", (upstreamResponse) => forwardResponse(upstreamResponse, response, isOpen));
  response.on("close", () => upstream.destroy());
  pipeline(request, gatedPipe(isOpen), upstream, () => undefined);
}

/** Forwards a response. */
export function forwardResponse(upstreamResponse: IncomingMessage, response: ServerResponse, isOpen: IsOpen): void {
  response.writeHead(upstreamResponse.statusCode ?? 502, forwarded(upstreamResponse.headers));
  pipeline(upstreamResponse, gatedPipe(isOpen), response, () => undefined);
}

/** Responds with a line of text and closes the connection. */
export function respondText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", connection: "close" }).end(`${text}\n`);
}
