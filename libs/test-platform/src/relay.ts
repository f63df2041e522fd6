import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

/**
 * How connections are disturbed. `refuse`: existing connections break and new ones are refused. `silence`: no data
 * passes until the relay is restored. `mute`: requests pass, responses are lost.
 */
export type NetworkFault = "refuse" | "silence" | "mute";

type Joint = { readonly client: Socket; readonly server: Socket };

/** A TCP relay in front of one address, whose connections can be disturbed. */
export class Relay {
  readonly url: string;
  readonly #server: Server;
  readonly #target: URL;
  readonly #joints = new Set<Joint>();
  #fault: NetworkFault | undefined;

  private constructor(server: Server, target: string) {
    this.#server = server;
    this.#target = new URL(target);
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** Creates a relay to the origin of `target`. */
  static async to(target: string): Promise<Relay> {
    const server = createServer({ pauseOnConnect: true }, (client) => relay.#take(client));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const relay = new Relay(server, target);
    return relay;
  }

  cut(fault: NetworkFault): void {
    this.#fault = fault;
    for (const joint of this.#joints) {
      if (fault === "refuse") end(joint);
      if (fault === "silence") pause(joint);
    }
  }

  /** Ends the disturbance. Connections that lost responses are closed. */
  repair(): void {
    const fault = this.#fault;
    this.#fault = undefined;
    for (const joint of this.#joints) {
      if (fault === "mute") end(joint);
      else flow(joint);
    }
  }

  async close(): Promise<void> {
    const closed = new Promise<unknown>((resolve) => this.#server.close(resolve));
    for (const joint of this.#joints) end(joint);
    await closed;
  }

  #take(client: Socket): void {
    if (this.#fault === "refuse") return void client.destroy();
    const joint = { client, server: connect(Number(this.#target.port), this.#target.hostname) };
    this.#joints.add(joint);
    for (const socket of [client, joint.server]) {
      socket.on("error", () => end(joint));
      socket.once("close", () => {
        this.#joints.delete(joint);
        end(joint);
      });
    }
    client.on("data", (bytes: Buffer) => void joint.server.write(bytes));
    joint.server.on("data", (bytes: Buffer) => void (this.#fault === "mute" || client.write(bytes)));
    client.once("end", () => joint.server.end());
    joint.server.once("end", () => client.end());
    if (this.#fault === "silence") pause(joint);
    else flow(joint);
  }
}

function pause({ client, server }: Joint): void {
  client.pause();
  server.pause();
}

function flow({ client, server }: Joint): void {
  client.resume();
  server.resume();
}

function end({ client, server }: Joint): void {
  client.destroy();
  server.destroy();
}
