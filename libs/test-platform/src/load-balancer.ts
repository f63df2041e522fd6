import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

/** A TCP load balancer: distributes connections round-robin over several servers and skips those that refuse. */
export class LoadBalancer {
  readonly url: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async open(ports: readonly number[]): Promise<LoadBalancer> {
    let turn = 0;
    const server = createServer({ pauseOnConnect: true }, (client) => {
      balancer.#track(client);
      const first = turn++;
      balancer.#join(
        client,
        ports.map((_port, index) => ports[(first + index) % ports.length]!),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const balancer = new LoadBalancer(server);
    return balancer;
  }

  async close(): Promise<void> {
    // Also resolves if it was closed before.
    const closed = new Promise<unknown>((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #join(client: Socket, [port, ...others]: readonly number[]): void {
    if (port === undefined) return void client.destroy();
    const server = connect(port, "127.0.0.1");
    const refused = (): void => this.#join(client, others);
    server.once("error", refused);
    server.once("connect", () => {
      server.off("error", refused);
      this.#track(server);
      client.once("close", () => server.destroy());
      server.once("close", () => client.destroy());
      client.pipe(server).pipe(client);
    });
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.#sockets.delete(socket));
  }
}
