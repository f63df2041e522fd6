import {
  createServer,
  request as httpRequest,
  STATUS_CODES,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { OutboundGate } from "./outbound-gate.ts";
import type { Denial } from "./denials.ts";
import { forward, forwarded, respondText } from "./forwarding.ts";
import type { GitGateway } from "./git-gateway.ts";
import { joinGated } from "./gated-pipe.ts";
import type { EgressPolicy } from "./policy.ts";
import { listenOnSocket } from "./unix-socket.ts";

/** The maximum number of concurrent connections of one sandbox. */
const CONNECTIONS_MAX = 256;
const CONNECT_TIMEOUT_MS = 10_000;
const ADDRESSES_MAX = 3;
/** How often idle connections are checked for a closed gate. Transferred data is checked immediately. */
const GATE_CHECK_INTERVAL_MS = 200;
export type EgressProxyOptions = {
  readonly policy: EgressPolicy;
  /** Checked before each connection and for every chunk of data. */
  readonly gate: OutboundGate;
  readonly git?: GitGateway;
  readonly onDenied: (denial: Denial) => void;
};

/**
 * The only network access of a sandbox: HTTP and CONNECT through a Unix socket, to hosts that the policy allows, while
 * the outbound gate is open. A new connection waits for the gate; open connections are closed when it closes.
 */
export class EgressProxy {
  readonly #options: EgressProxyOptions;
  readonly #server: Server;
  readonly #open = new Set<Duplex>();
  readonly #gateCheck: NodeJS.Timeout;
  readonly #release: () => void;

  private constructor(options: EgressProxyOptions, server: Server, release: () => void) {
    this.#options = options;
    this.#server = server;
    this.#release = release;
    server.maxConnections = CONNECTIONS_MAX;
    server.on("connection", (socket) => this.#track(socket));
    server.on(
      "connect",
      (request, socket, head) => void this.#tunnel(request, socket, head).catch(() => socket.destroy()),
    );
    server.on(
      "request",
      (request, response) => void this.#handleRequest(request, response).catch(() => response.destroy()),
    );
    server.on("clientError", (_error, socket) => socket.destroy());
    this.#gateCheck = setInterval(() => this.#isOpen() || this.#closeAll(), GATE_CHECK_INTERVAL_MS).unref();
  }

  /** Listens on a Unix socket, for processes that can access its directory. Throws file system errors. */
  static async listen(socketPath: string, options: EgressProxyOptions): Promise<EgressProxy> {
    const server = createServer({ keepAliveTimeout: 60_000, requestTimeout: 0 });
    const release = await listenOnSocket(server, socketPath);
    return new EgressProxy(options, server, release);
  }

  /** Listens on a port of this machine, for sandboxes of kind `none`. */
  static async listenLocally(
    options: EgressProxyOptions,
  ): Promise<{ readonly proxy: EgressProxy; readonly port: number }> {
    const server = createServer({ keepAliveTimeout: 60_000, requestTimeout: 0 });
    const proxy = new EgressProxy(options, server, () => undefined);
    await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
    return { proxy, port: (server.address() as { port: number }).port };
  }

  /** Closes all connections. */
  close(): void {
    clearInterval(this.#gateCheck);
    this.#server.close(() => this.#release());
    this.#closeAll();
  }

  #isOpen = (): boolean => {
    try {
      this.#options.gate.assertOpen();
      return true;
    } catch {
      return false;
    }
  };

  #track(socket: Duplex): void {
    this.#open.add(socket);
    socket.once("close", () => this.#open.delete(socket));
    socket.on("error", () => socket.destroy());
  }

  #closeAll(): void {
    for (const socket of this.#open) socket.destroy();
  }

  async #tunnel(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    const target = targetOf(`http://${request.url}`, 443);
    if (!target) return refuse(client, 400, "CONNECT requires a host and a port.");
    await this.#options.gate.whenOpen();
    const found = await this.#connect(target);
    if ("refusal" in found) return refuse(client, found.status, found.refusal);
    this.#track(found.socket);
    client.write("HTTP/1.1 200 Connection established\r\n\r\n");
    if (head.length > 0) found.socket.write(head);
    joinGated(client, found.socket, this.#isOpen);
  }

  async #handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    await this.#options.gate.whenOpen();
    const { url = "/", method = "GET" } = request;
    if (url.startsWith("/")) {
      const { git } = this.#options;
      return git
        ? git.handle(request, response, this.#isOpen, this.#options.onDenied)
        : respondText(response, 400, "This is a proxy.");
    }
    const target = url.startsWith("http://") ? targetOf(url, 80) : undefined;
    if (!target) return respondText(response, 400, "Only http URLs are forwarded; use CONNECT for others.");
    const found = await this.#connect(target);
    if ("refusal" in found) return respondText(response, found.status, found.refusal);
    this.#track(found.socket);
    const { pathname, search, host } = new URL(url);
    forward(
      request,
      response,
      httpRequest({
        createConnection: () => found.socket,
        method,
        path: pathname + search,
        headers: { ...forwarded(request.headers), host },
      }),
      this.#isOpen,
    );
  }

  /** Connects to one of the checked addresses. The name is not resolved again. */
  async #connect({
    host,
    port,
  }: Target): Promise<{ readonly socket: Socket } | { readonly status: number; readonly refusal: string }> {
    const { policy, onDenied } = this.#options;
    const decision = await policy.decide(host, port);
    if ("denied" in decision) {
      onDenied({ host, port, reason: decision.denied });
      return {
        status: decision.denied === "name_unknown" ? 502 : 403,
        refusal: `${DENIED[decision.denied]} (${host}:${port})`,
      };
    }
    for (const address of decision.addresses.slice(0, ADDRESSES_MAX)) {
      const socket = await connected(address, port);
      if (socket) return { socket };
    }
    return { status: 502, refusal: `No connection to ${host}:${port}.` };
  }
}

const DENIED = {
  host_not_allowed:
    "This run must not connect to this host: the worker's operator or the run's environment does not allow it.",
  internal_address: "This host has an internal address, to which runs must not connect.",
  name_unknown: "The name of this host cannot be resolved.",
} as const;

type Target = { readonly host: string; readonly port: number };

/** Returns the host and port of a URL, parsed by the URL standard: `0x7f.1` is 127.0.0.1. */
function targetOf(url: string, port: number): Target | undefined {
  if (!URL.canParse(url)) return undefined;
  const { hostname, port: given } = new URL(url);
  const named = /:(\d+)$/.exec(url.slice("http://".length).split(/[/?#]/)[0] ?? "")?.[1]; // URL omits a default port
  return hostname === ""
    ? undefined
    : { host: hostname.replace(/^\[(.*)\]$/, "$1"), port: Number(given || named || port) };
}

function connected(address: string, port: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port, timeout: CONNECT_TIMEOUT_MS });
    const fail = (): void => {
      socket.destroy();
      resolve(undefined);
    };
    socket.once("error", fail).once("timeout", fail);
    socket.once("connect", () => {
      socket.off("error", fail).off("timeout", fail).setTimeout(0);
      socket.on("error", () => socket.destroy());
      resolve(socket);
    });
  });
}

function refuse(client: Duplex, status: number, text: string): void {
  const body = Buffer.from(`${text}\n`);
  client.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body.toString("utf8")}`,
  );
}
