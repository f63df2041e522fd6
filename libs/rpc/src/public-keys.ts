import { systemClock, type Clock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";
import type { JWK } from "jose";

/** A public key whose `kid` is `<owner>.<thumbprint>`: it speaks for that owner only. */
export type PublicKey = JWK & { readonly kid: string };

/** Finds public keys by their ids. */
export interface KeySource {
  /** Undefined: no such key. Errors: keys_unavailable (unavailable), when the owner cannot be asked. */
  find(kid: string): Promise<PublicKey | undefined>;
}

/** Keys that are known beforehand. */
export function localKeys(keys: readonly PublicKey[]): KeySource {
  const byId = new Map(keys.map((key) => [key.kid, key]));
  return { find: async (kid) => byId.get(kid) };
}

export type RemoteKeysOptions = {
  /** Where each owner publishes its keys (`/jwks.json` of its operations port). All addresses are asked; one that answers is enough. */
  readonly owners: Readonly<Record<string, readonly string[]>>;
  readonly fetch?: typeof fetch;
  readonly clock?: Clock;
};

/** Strangers can make up key ids: they make us ask no more often than this. */
const ASK_AGAIN_MS = 1_000;
/** A key its owner has withdrawn is forgotten after this. */
const REFRESH_MS = 5 * 60_000;
const TIMEOUT_MS = 5_000;

/**
 * The keys their owners publish: asked for when a key is seen for the first time, and again now and then. An owner that is
 * down for a while does no harm to keys that are known. From an owner's address only keys of its own name are taken.
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
      if (ageMs > REFRESH_MS) void this.#ask().catch(() => {}); // what is known stays good meanwhile
      return known;
    }
    if (ageMs > ASK_AGAIN_MS || this.#asking) await this.#ask();
    return this.#keys.get(kid);
  }

  #ask(): Promise<void> {
    this.#asking ??= this.#fetchAll().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  /** Replicas publish different keys while one is being replaced: all are asked, and one that answers is enough. */
  async #fetchAll(): Promise<void> {
    const { name, urls, clock } = this.#o;
    const answers = await Promise.allSettled(urls.map((url) => this.#fetch(url)));
    if (answers.every(({ status }) => status === "rejected")) {
      const cause = new AggregateError(
        answers.map((answer) => (answer.status === "rejected" ? answer.reason : undefined)),
      );
      throw new DomainError({
        kind: "unavailable",
        reason: "keys_unavailable",
        message: "A service is not reachable; retry in a moment.",
        cause,
      });
    }
    const keys = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
    this.#keys = new Map(keys.filter(({ kid }) => kid.startsWith(`${name}.`)).map((key) => [key.kid, key]));
    this.#askedMs = clock.monotonicMs();
  }

  async #fetch(url: string): Promise<PublicKey[]> {
    const response = await this.#o.get(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!response.ok) throw new Error(`${url} answers ${response.status}`);
    const { keys } = (await response.json()) as { keys?: unknown };
    return Array.isArray(keys)
      ? keys.filter((key): key is PublicKey => typeof (key as { kid?: unknown } | null)?.kid === "string")
      : [];
  }
}
