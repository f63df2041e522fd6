import { isIP } from "node:net";
import type { DescMessage } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport, type UnaryResponse } from "@connectrpc/connect";
import { createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { rpc } from "@millwright/contracts";
import { Addresses, type Address, type Resolve } from "./addresses.ts";
import { isUnreachable } from "./errors.ts";
import { isRepeatable } from "./repeatable.ts";
import { SESSION_MB_MAX } from "./session-limits.ts";
import { callUnary, type UnaryCallOptions } from "./unary-client.ts";

export type UpstreamOptions = {
  /** CA certificates (PEM) for `https:` addresses; those of the system when absent. */
  readonly ca?: string;
  /** Resolves host names; the system's resolver when absent. */
  readonly resolve?: Resolve;
  /** How often a session with calls is checked when it is silent, and how long it may take to respond. */
  readonly ping?: { readonly everyMs: number; readonly timeoutMs: number };
};

export type UpstreamTransport = Transport & {
  /** Closes every session and its calls. */
  close(): void;
};

const ATTEMPTS_MAX = 3;
const CONNECT_MS = 2_000;
/** How long an address that failed is used only if no other is available. */
const REST_MS = 1_000;
const PING = { everyMs: 10_000, timeoutMs: 5_000 };

/**
 * Returns a transport to a service with many replicas: one HTTP/2 session per address; the least busy one is used. An
 * unreachable address is skipped; a call that was sent without a response is retried elsewhere only if its method
 * permits it.
 */
export function upstreamTransport(urls: readonly string[], options: UpstreamOptions = {}): UpstreamTransport {
  const replicas = new Replicas(new Addresses(urls, options.resolve), options);
  return {
    async unary(method, signal, timeoutMs, header, input) {
      const endMs = timeoutMs ? performance.now() + timeoutMs : undefined;
      const tried = new Set<Replica>();
      for (let attempt = 1; ; attempt++) {
        const { replica, done } = await replicas.reach(tried);
        const leftMs = endMs === undefined ? timeoutMs : Math.ceil(endMs - performance.now());
        try {
          if (endMs !== undefined && leftMs! <= 0)
            throw new ConnectError("the deadline has passed", Code.DeadlineExceeded);
          return await replica.unary({ method, signal, timeoutMs: leftMs, header, input });
        } catch (error) {
          if (!isUnanswered(error, signal)) throw error;
          replica.rest();
          tried.add(replica);
          if (attempt === ATTEMPTS_MAX || !isRepeatable(method, input)) throw error;
        } finally {
          done();
        }
      }
    },
    async stream(method, signal, timeoutMs, header, input, values) {
      const { replica, done } = await replicas.reach(new Set());
      try {
        const response = await replica.transport.stream(method, signal, timeoutMs, header, input, values);
        return { ...response, message: until(response.message, done) };
      } catch (error) {
        done();
        throw error;
      }
    },
    close: () => replicas.close(),
  };
}

async function* until<T>(messages: AsyncIterable<T>, done: () => void): AsyncIterable<T> {
  try {
    yield* messages;
  } finally {
    done();
  }
}

/** Returns whether there was no response: neither an error of the service, nor a cancellation by the client. */
function isUnanswered(error: unknown, signal: AbortSignal | undefined): boolean {
  const failure = ConnectError.from(error);
  if (signal?.aborted || failure.findDetails(rpc.ErrorDetailSchema).length > 0) return false;
  return [Code.Unavailable, Code.Aborted, Code.Canceled].includes(failure.code) || isUnreachable(failure);
}

const ignore = (): void => {};

/**
 * HTTP/2 sessions whose errors never end the process. The base class stops listening to a session that is destroyed, if
 * another call begins before the session has emitted its error.
 */
class Sessions extends Http2SessionManager {
  readonly #guarded = new WeakSet<object>();

  override async request(
    ...args: Parameters<Http2SessionManager["request"]>
  ): ReturnType<Http2SessionManager["request"]> {
    const stream = await super.request(...args);
    const { session } = stream;
    if (session && !this.#guarded.has(session)) {
      this.#guarded.add(session);
      session.on("error", ignore); // the calls of the session fail with it
    }
    return stream;
  }
}

class Replica {
  readonly transport: Transport;
  readonly #session: Http2SessionManager;
  #load = 0;
  #restsUntilMs = 0;

  constructor({ url, host }: Address, { ca, ping = PING }: UpstreamOptions) {
    const family = isIP(host);
    // The session connects to one address, while host header and certificate check use the name.
    const lookup = (
      _name: string,
      { all }: { all?: boolean },
      give: (error: null, found: unknown, family?: number) => void,
    ): void => (all ? give(null, [{ address: host, family }]) : give(null, host, family));
    this.#session = new Sessions(url, { pingIntervalMs: ping.everyMs, pingTimeoutMs: ping.timeoutMs }, {
      lookup,
      maxSessionMemory: SESSION_MB_MAX,
      ...(ca === undefined ? {} : { ca }),
    } as object);
    this.transport = createConnectTransport({
      baseUrl: url,
      httpVersion: "2",
      useBinaryFormat: true,
      sessionManager: this.#session,
    });
  }

  unary<I extends DescMessage, O extends DescMessage>(options: UnaryCallOptions<I, O>): Promise<UnaryResponse<I, O>> {
    return callUnary(this.#session, options);
  }

  /** Cost of a call: free replicas before busy ones, and both before those that failed recently. */
  get cost(): number {
    return this.#load + (performance.now() < this.#restsUntilMs ? 1_000_000 : 0);
  }

  /** Counts a call; returns a function that ends it. */
  take(): () => void {
    this.#load++;
    let isTaken = true;
    return () => {
      if (isTaken) this.#load--;
      isTaken = false;
    };
  }

  rest(): void {
    this.#restsUntilMs = performance.now() + REST_MS;
  }

  /** Opens or checks the session. Returns why it cannot be used. */
  async connect(): Promise<{ failure?: unknown }> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), CONNECT_MS);
    });
    const state = await Promise.race([this.#session.connect(), late]);
    clearTimeout(timer);
    if (state === "late" && this.#load <= 1) this.close(); // other calls may still receive their responses on it
    return state === "late" || state === "error" ? { failure: this.#session.error() } : {};
  }

  close(): void {
    this.#session.abort();
  }
}

class Replicas {
  readonly #addresses: Addresses;
  readonly #options: UpstreamOptions;
  readonly #known = new Map<string, Replica>();
  #turn = 0;

  constructor(addresses: Addresses, options: UpstreamOptions) {
    this.#addresses = addresses;
    this.#options = options;
  }

  /**
   * Returns a replica with an open session, preferably one that was not tried; it counts as busy until `done`. Errors:
   * unavailable if none is reachable.
   */
  async reach(tried: ReadonlySet<Replica>): Promise<{ replica: Replica; done: () => void }> {
    const all = await this.#all();
    const fresh = all.filter((replica) => !tried.has(replica));
    const left = fresh.length > 0 ? fresh : all;
    let failure: unknown;
    for (let replica = this.#best(left); replica; replica = this.#best(left)) {
      left.splice(left.indexOf(replica), 1);
      const done = replica.take();
      const connected = await replica.connect();
      if (!("failure" in connected)) return { replica, done };
      done();
      replica.rest();
      failure = connected.failure;
    }
    throw new ConnectError("no replica can be reached", Code.Unavailable, undefined, undefined, failure);
  }

  close(): void {
    for (const replica of this.#known.values()) replica.close();
  }

  async #all(): Promise<Replica[]> {
    const addresses = new Map(
      (await this.#addresses.all()).map((address) => [`${address.url} ${address.host}`, address]),
    );
    for (const [key, replica] of this.#known) {
      if (addresses.has(key)) continue;
      this.#known.delete(key); // its calls end by themselves; then the idle session is closed
      replica.rest();
    }
    for (const [key, address] of addresses)
      if (!this.#known.has(key)) this.#known.set(key, new Replica(address, this.#options));
    return [...this.#known.values()];
  }

  /** Returns the replica with the lowest cost, round robin among equals. */
  #best(replicas: readonly Replica[]): Replica | undefined {
    const least = Math.min(...replicas.map(({ cost }) => cost));
    const equals = replicas.filter(({ cost }) => cost <= least);
    return equals[this.#turn++ % Math.max(equals.length, 1)];
  }
}
