import { systemClock, type Clock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";
import type { JWK } from "jose";

/** A public key whose `kid` is `<owner>.<thumbprint>`: it is valid for that owner only. */
export type PublicKey = JWK & { readonly kid: string };

/** Finds public keys by their ids. */
export interface KeySource {
  /** Returns undefined for an unknown key. Errors: keys_unavailable (unavailable) if the owner is unreachable. */
  find(kid: string): Promise<PublicKey | undefined>;
}

/** Returns a source of fixed keys. */
export function localKeys(keys: readonly PublicKey[]): KeySource {
  const byId = new Map(keys.map((key) => [key.kid, key]));
  return { find: async (kid) => byId.get(kid) };
}

export type RemoteKeysOptions = {
  /**
   * Where each owner publishes its keys (`/jwks.json` of its operations port). All addresses are requested; one
   * response is enough.
   */
  readonly owners: Readonly<Record<string, readonly string[]>>;
  readonly fetch?: typeof fetch;
  readonly clock?: Clock;
};

/** Minimum time between requests that are caused by unknown key ids, which attackers can make up. */
const ASK_AGAIN_MS = 1_000;
/** How long a key is cached that its owner may have withdrawn. */
const REFRESH_MS = 5 * 60_000;
const TIMEOUT_MS = 5_000;

/**
 * Fetches the keys that their owners publish: when a key is seen for the first time, and periodically. Known keys stay
 * valid while an owner is down. From an owner's address only keys of its own name are accepted.
 */
export class RemoteKeys implements KeySource {
  readonly #owners: ReadonlyMap<string, Owner>;

  constructor({ owners, fetch: get = fetch, clock = systemClock }: RemoteKeysOptions) {
    this.#owners = new Map(Object.entries(owners).map(([name, urls]) => [name, new Owner({ name, urls, get, clock })]));
  }

  async find(kid: string): Promise<PublicKey | undefined> {
    return this.#owners.get(kid.split(".")[0] ?? "")?.find(kid);
  }
}

class Owner {
  readonly #o: { name: string; urls: readonly string[]; get: typeof fetch; clock: Clock };
  #keys: ReadonlyMap<string, PublicKey> = new Map();
  #askedMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;

  constructor(o: { name: string; urls: readonly string[]; get: typeof fetch; clock: Clock }) {
    this.#o = o;
  }

  async find(kid: string): Promise<PublicKey | undefined> {
    const ageMs = this.#o.clock.monotonicMs() - this.#askedMs;
    const known = this.#keys.get(kid);
    if (known) {
      if (ageMs > REFRESH_MS) void this.#ask().catch(() => {}); // known keys stay valid during the fetch
      return known;
    }
    if (ageMs > ASK_AGAIN_MS || this.#asking) await this.#ask();
    return this.#keys.get(kid);
  }

  #ask(): Promise<void> {
    this.#asking ??= this.#fetchAll().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  /** Replicas publish different keys during a rotation: all are requested, and one response is enough. */
  async #fetchAll(): Promise<void> {
    const { name, urls, clock } = this.#o;
    const results = await Promise.allSettled(urls.map((url) => this.#fetch(url)));
    if (results.every(({ status }) => status === "rejected")) {
      const cause = new AggregateError(
        results.map((result) => (result.status === "rejected" ? result.reason : undefined)),
      );
      throw new DomainError({
        kind: "unavailable",
        reason: "keys_unavailable",
        message: "A service of the platform is not reachable. Retry in a few seconds.",
        cause,
      });
    }
    const keys = results.flatMap((result) => (result.status === "fulfilled" ? result.value : []));
    this.#keys = new Map(keys.filter(({ kid }) => kid.startsWith(`${name}.`)).map((key) => [key.kid, key]));
    this.#askedMs = clock.monotonicMs();
  }

  async #fetch(url: string): Promise<PublicKey[]> {
    const response = await this.#o.get(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!response.ok) throw new Error(`${url} results ${response.status}`);
    const { keys } = (await response.json()) as { keys?: unknown };
    return Array.isArray(keys)
      ? keys.filter((key): key is PublicKey => typeof (key as { kid?: unknown } | null)?.kid === "string")
      : [];
  }
}
