import { connect, createServer } from "node:net";
import type { RelayRequest } from "./protocol.ts";

const CONNECTIONS_MAX = 512;

/**
 * Listens on a port of the sandbox's loopback interface and forwards every connection to a Unix socket of the worker.
 * Resolves when it listens.
 */
export function relay({ port, socket: path }: RelayRequest): Promise<void> {
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const upstream = connect({ path, allowHalfOpen: true });
    const end = (): void => {
      client.destroy();
      upstream.destroy();
    };
    client.on("error", end);
    upstream.on("error", end);
    client.pipe(upstream).pipe(client);
  });
  server.maxConnections = CONNECTIONS_MAX;
  return new Promise((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
}
