import { lookup } from "node:dns/promises";
import { isIP } from "node:net";

/** One endpoint of an upstream service: a configured URL, and a resolved host address. */
export type Address = { readonly url: string; readonly host: string };

/** How long a resolved name is cached. */
const RESOLVE_MS = 5_000;

/** Returns all addresses of a host name. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

const resolveAll: Resolve = async (hostname) => (await lookup(hostname, { all: true })).map(({ address }) => address);

/** The addresses behind a list of URLs; a name may resolve to several addresses, which may change. */
export class Addresses {
  readonly #urls: readonly URL[];
  readonly #resolve: Resolve;
  #known: readonly Address[] = [];
  #askedMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;

  constructor(urls: readonly string[], resolve: Resolve = resolveAll) {
    if (urls.length === 0) throw new Error("an upstream service needs at least one address");
    this.#urls = urls.map((url) => new URL(url));
    this.#resolve = resolve;
  }

  /** Returns the cached addresses, or the first resolution. If resolving fails, the last addresses are returned. */
  async all(): Promise<readonly Address[]> {
    if (performance.now() - this.#askedMs > RESOLVE_MS)
      this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
    if (this.#known.length === 0) await this.#asking;
    return this.#known;
  }

  async #ask(): Promise<void> {
    this.#askedMs = performance.now();
    const found = await Promise.all(this.#urls.map((url) => this.#addressesOf(url)));
    this.#known = found.flat();
    if (this.#known.length === 0) this.#askedMs = Number.NEGATIVE_INFINITY; // resolved again by the next call
  }

  async #addressesOf({ origin, hostname }: URL): Promise<readonly Address[]> {
    const name = hostname.replace(/^\[|\]$/g, "");
    if (isIP(name)) return [{ url: origin, host: name }];
    const before = this.#known.filter(({ url }) => url === origin);
    return this.#resolve(name).then(
      (hosts) => hosts.map((host) => ({ url: origin, host })),
      () => before,
    );
  }
}
