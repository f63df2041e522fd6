import type { IncomingMessage, ServerResponse } from "node:http";
import type { GatewayEnding } from "./gateway-wires.ts";

const BODY_BYTES_MAX = 64 * 1024 * 1024;
/** Request headers that are forwarded. The key is added by the gateway. */
const FORWARDED_HEADERS = [
  "content-type",
  "accept",
  "anthropic-version",
  "anthropic-beta",
  "openai-beta",
  "user-agent",
];
const RETURNED_HEADERS = ["content-type", "retry-after", "request-id", "x-request-id"];

/** Returns the headers of a harness's request that are sent to the provider. */
export const forwardedHeaders = (request: IncomingMessage): Record<string, string> =>
  Object.fromEntries(
    FORWARDED_HEADERS.flatMap((name) =>
      request.headers[name] === undefined ? [] : [[name, String(request.headers[name])]],
    ),
  );

/** Returns the headers of the provider's response that are sent to the harness. */
export const returnedHeaders = (providerResponse: Response): Record<string, string> =>
  Object.fromEntries(
    RETURNED_HEADERS.flatMap((name) =>
      providerResponse.headers.get(name) === null ? [] : [[name, providerResponse.headers.get(name)!]],
    ),
  );

/** Reads the body of a request as text. Throws if it is larger than 64 MiB. */
export async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    if ((bytes += chunk.length) > BODY_BYTES_MAX) throw new Error("The request is too large.");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Responds with the end of a turn. */
export function respondEnding(response: ServerResponse, { contentType, body }: GatewayEnding): void {
  response.writeHead(200, { "content-type": contentType }).end(body);
}

/** Responds with an error in the provider's format, so that the harness treats it as permanent. */
export function respondError(response: ServerResponse, status: number, message: string, code?: string): void {
  response.writeHead(status, { "content-type": "application/json" }).end(
    JSON.stringify({
      type: "error",
      error: {
        type: status === 400 ? "invalid_request_error" : "api_error",
        code,
        message,
      },
    }),
  );
}
