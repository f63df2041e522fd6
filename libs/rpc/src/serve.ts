import http2 from "node:http2";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { healthRoutes } from "./health.ts";
import { nodeHandler } from "./node-handler.ts";
import type { Routes, ServerOptions } from "./server-options.ts";
import { SESSION_MB_MAX, STREAMS_MAX } from "./session-limits.ts";
import { UnaryServer } from "./unary-server.ts";

export type Http2Server = {
  readonly port: number;
  /** Accepts no new calls, ends streams, waits up to `graceMs` for running calls, then aborts them. */
  close(graceMs?: number): Promise<void>;
};

export type Http2Listen = {
  /** 0 uses a free port. */
  readonly port: number;
  readonly host?: string;
  /** Certificate and key (PEM). Absent: without TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Readiness for `grpc.health.v1`; always ready when absent. */
  readonly isReady?: () => Promise<boolean>;
};

/** Serves Connect and gRPC over HTTP/2, with gRPC's health service. Does not serve HTTP/1.1. */
export async function serveHttp2(
  routes: Routes,
  options: ServerOptions,
  { port, host = "127.0.0.1", tls, isReady = async () => true }: Http2Listen,
): Promise<Http2Server> {
  const shutdown = new AbortController();
  const withHealth: Routes = (router) => {
    routes(router);
    healthRoutes(router, isReady);
  };
  const unary = new UnaryServer(options);
  // Never listens: it serves the streams that it is given.
  const others = http2.createServer(
    nodeHandler(unary.recording(withHealth), options, { shutdownSignal: shutdown.signal }),
  );
  const limits = { settings: { maxConcurrentStreams: STREAMS_MAX }, maxSessionMemory: SESSION_MB_MAX };
  const server = tls ? http2.createSecureServer({ ...limits, ...tls }) : http2.createServer(limits);
  server.on("stream", (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders, ...rest: unknown[]) => {
    if (!unary.serveStream(stream, headers)) others.emit("stream", stream, headers, ...rest);
  });
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    async close(graceMs = 5_000) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const session of sessions) session.close();
      const stopping = new ConnectError("the server is stopping", Code.Unavailable);
      shutdown.abort(stopping);
      unary.abort(stopping);
      const cut = setTimeout(() => sessions.forEach((session) => session.destroy()), graceMs);
      await closed;
      clearTimeout(cut);
    },
  };
}

/**
 * Returns a request handler for Connect over HTTP/1.1 below a path prefix, for a port that serves other paths too: the
 * caller passes on requests whose path starts with the prefix. gRPC is not served there.
 */
export function mountHttp1(
  routes: Routes,
  options: ServerOptions,
  prefix: string,
): (request: IncomingMessage, response: ServerResponse) => void {
  const unary = new UnaryServer(options, prefix);
  const others = nodeHandler(unary.recording(routes), options, { prefix, grpc: false, grpcWeb: false });
  return (request, response) => {
    if (!unary.serveRequest(request, response)) others(request, response);
  };
}
