import { isIP } from "node:net";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { rpc } from "@millwright/contracts";
import { Addresses, type Address, type Resolve } from "./addresses.ts";
import { isUnreachable } from "./errors.ts";
import { isRepeatable } from "./repeatable.ts";

export type UpstreamOptions = {
  /** Certificates (PEM) that vouch for `https:` addresses; those of the system when absent. */
  readonly ca?: string;
  /** Resolves host names; the system's resolver when absent. */
  readonly resolve?: Resolve;
};

export type UpstreamTransport = Transport & {
  /** Closes every session, with the calls on it. */
  close(): void;
};

const ATTEMPTS_MAX = 3;
const CONNECT_MS = 2_000;
/** An address that failed is the last choice for so long. */
const REST_MS = 1_000;
const PING_EVERY_MS = 10_000;
const PING_TIMEOUT_MS = 5_000;

/**
 * A transport to a service in many replicas: one HTTP/2 session per address, the least busy one is asked. An address that
 * cannot be reached is passed over; a call that was sent and not answered is repeated elsewhere only if its method may be.
 */
export function upstreamTransport(urls: readonly string[], options: UpstreamOptions = {}): UpstreamTransport {
  const replicas = new Replicas(new Addresses(urls, options.resolve), options.ca);
  return {
    async unary(method, signal, timeoutMs, header, input, values) {
      const endMs = timeoutMs ? performance.now() + timeoutMs : undefined;
      const tried = new Set<Replica>();
      for (let attempt = 1; ; attempt++) {
        const { replica, done } = await replicas.reach(tried);
        const leftMs = endMs === undefined ? timeoutMs : Math.ceil(endMs - performance.now());
        try {
          if (endMs !== undefined && leftMs! <= 0) throw new ConnectError("the time is over", Code.DeadlineExceeded);
          return await replica.transport.unary(method, signal, leftMs, header, input, values);
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

/** Whether nobody answered: not the service's own word, not our own doing. */
function isUnanswered(error: unknown, signal: AbortSignal | undefined): boolean {
  const failure = ConnectError.from(error);
  if (signal?.aborted || failure.findDetails(rpc.ErrorDetailSchema).length > 0) return false;
  return [Code.Unavailable, Code.Aborted, Code.Canceled].includes(failure.code) || isUnreachable(failure);
}

class Replica {
  readonly transport: Transport;
  readonly #session: Http2SessionManager;
  #load = 0;
  #restsUntilMs = 0;

  constructor({ url, host }: Address, ca: string | undefined) {
    const family = isIP(host);
    // The session is to one address, while host header and certificate check keep the name.
    const lookup = (
      _name: string,
      { all }: { all?: boolean },
      give: (error: null, found: unknown, family?: number) => void,
    ): void => (all ? give(null, [{ address: host, family }]) : give(null, host, family));
    this.#session = new Http2SessionManager(url, { pingIntervalMs: PING_EVERY_MS, pingTimeoutMs: PING_TIMEOUT_MS }, {
      lookup,
      ...(ca === undefined ? {} : { ca }),
    } as object);
    this.transport = createConnectTransport({
      baseUrl: url,
      httpVersion: "2",
      useBinaryFormat: true,
      sessionManager: this.#session,
    });
  }

  /** Sorts the free before the busy, and both before those that failed just now. */
  get cost(): number {
    return this.#load + (performance.now() < this.#restsUntilMs ? 1_000_000 : 0);
  }

  /** Counts a call; answers how to end it. */
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

  /** Opens or checks the session. Answers why it cannot be used. */
  async connect(): Promise<{ failure?: unknown }> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), CONNECT_MS);
    });
    const state = await Promise.race([this.#session.connect(), late]);
    clearTimeout(timer);
    if (state === "late" && this.#load <= 1) this.close(); // others may still get their answers on it
    return state === "late" || state === "error" ? { failure: this.#session.error() } : {};
  }

  close(): void {
    this.#session.abort();
  }
}

class Replicas {
  readonly #addresses: Addresses;
  readonly #ca: string | undefined;
  readonly #known = new Map<string, Replica>();
  #turn = 0;

  constructor(addresses: Addresses, ca: string | undefined) {
    this.#addresses = addresses;
    this.#ca = ca;
  }

  /**
   * A replica with an open session, one that was not tried if there is any; it counts as busy until `done`. Errors:
   * unavailable, when none can be reached.
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
      this.#known.delete(key); // its calls end by themselves; then the session is closed for idleness
      replica.rest();
    }
    for (const [key, address] of addresses)
      if (!this.#known.has(key)) this.#known.set(key, new Replica(address, this.#ca));
    return [...this.#known.values()];
  }

  /** The cheapest; among equals each in turn. */
  #best(replicas: readonly Replica[]): Replica | undefined {
    const least = Math.min(...replicas.map(({ cost }) => cost));
    const equals = replicas.filter(({ cost }) => cost <= least);
    return equals[this.#turn++ % Math.max(equals.length, 1)];
  }
}
