import type http from "node:http";
import type http2 from "node:http2";
import { createConnectRouter, type ConnectRouterOptions } from "@connectrpc/connect";
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import { serverOptions } from "./server.ts";
import type { Routes, ServerOptions } from "./server-options.ts";

type NodeHandler = (
  request: http.IncomingMessage | http2.Http2ServerRequest,
  response: http.ServerResponse | http2.Http2ServerResponse,
) => void;

/**
 * Serves routes below `prefix`; other paths are 404. Connect's own adapter prints to the console whenever a reader
 * leaves a stream. The server logs how each RPC ended, so here that is logged at debug level only.
 */
export function nodeHandler(
  routes: Routes,
  options: ServerOptions,
  { prefix = "", ...more }: ConnectRouterOptions & { prefix?: string } = {},
): NodeHandler {
  const router = createConnectRouter({
    acceptCompression: [compressionGzip, compressionBrotli],
    ...serverOptions(options),
    ...more,
  });
  routes(router);
  const handlers = new Map(router.handlers.map((handler) => [prefix + handler.requestPath, handler]));
  return (request, response) => {
    const handler = handlers.get(request.url?.split("?", 1)[0] ?? "");
    if (!handler) {
      response.statusCode = 404;
      response.end();
      return;
    }
    handler(universalRequestFromNodeRequest(request, response, undefined, undefined))
      .then((universalResponse) => universalResponseToNodeResponse(universalResponse, response))
      .catch((error: unknown) =>
        options.log.debug({ error, operation: handler.method.name }, "an universalResponse was not read to its end"),
      );
  };
}
