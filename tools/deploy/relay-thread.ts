/**
 * A worker thread that passes connections on to a port of this machine; with a certificate, it ends their TLS. Posts a
 * message when it listens. A thread of its own, because changes of the network block the main one.
 */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { parentPort, workerData } from "node:worker_threads";

export type RelayOptions = {
  readonly address: string;
  readonly port: number;
  /** The port of this machine. */
  readonly to: number;
  readonly certificate?: { readonly cert: string; readonly key: string };
};

const { address, port, to, certificate } = workerData as RelayOptions;

const pass = (client: Socket): void => {
  const target = connect(to, "127.0.0.1");
  client.on("error", () => target.destroy());
  target.on("error", () => client.destroy());
  client.pipe(target).pipe(client);
};
const server = certificate ? createTlsServer(certificate, pass) : createServer(pass);
server.listen(port, address);
await once(server, "listening");
parentPort!.postMessage("listening");
