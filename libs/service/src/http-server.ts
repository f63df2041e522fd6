import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { answerUnreadable, REQUEST_HEAD_BYTES_MAX } from "./unreadable-request.ts";

/** Requests and headers must arrive in time, or the connection is closed (against slow clients). */
const HEADERS_TIMEOUT_MS = 15_000;
const REQUEST_TIMEOUT_MS = 120_000;
/**
 * Idle timeout of a connection: longer than that of proxies and clients (often 60 s), so that the server never closes
 * it during a request.
 */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
/** Connections still busy this long after the stop began are destroyed. */
const DRAIN_MS = 5_000;

export type HttpServer = {
  readonly port: number;
  /** Also serves requests that arrived before. */
  serve(listener: RequestListener): void;
  /** From now on responses close their connections, so that clients open the next one to another replica. */
  drain(): void;
  /** Stops accepting, lets responses finish, then destroys the remaining connections. */
  stop(): Promise<void>;
};

/** Binds the port first, so that a taken one is reported before anything else starts; requests wait until `serve`. */
export async function listen(host: string, port: number): Promise<HttpServer> {
  let begin: (listener: RequestListener) => void = () => {};
  const listening = new Promise<RequestListener>((resolve) => (begin = resolve));
  let isDraining = false;
  const server = createServer({ maxHeaderSize: REQUEST_HEAD_BYTES_MAX }, (request, response) => {
    if (isDraining) response.setHeader("connection", "close");
    void listening.then((listener) => listener(request, response));
  });
  server.headersTimeout = HEADERS_TIMEOUT_MS;
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS;
  server.on("clientError", answerUnreadable);
  server.listen(port, host);
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    serve: (listener) => begin(listener),
    drain: () => void (isDraining = true),
    stop: () => stop(server),
  };
}

async function stop(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const cut = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
  await closed;
  clearTimeout(cut);
}
