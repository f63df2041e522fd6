import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { addressSet, isInternal } from "@millwright/addresses";
import { hostPatterns, type HostPatterns } from "./host-patterns.ts";

/** The operator's rules for the hosts that runs may connect to. */
export type EgressSettings = {
  /** Host patterns (`host-patterns.ts`); an empty list allows no hosts. */
  readonly allow: readonly string[];
  /** Internal addresses and networks that runs may connect to. */
  readonly internal: readonly string[];
};

export const NO_EGRESS: EgressSettings = { allow: [], internal: [] };

/** Why a connection is refused. */
export type DenialReason = "host_not_allowed" | "internal_address" | "name_unknown";
export type Decision = { readonly addresses: readonly string[] } | { readonly denied: DenialReason };

/** Resolves a name to addresses; the default is the system's resolver. */
export type Resolve = (host: string) => Promise<readonly string[]>;
const systemResolve: Resolve = async (host) => (await lookup(host, { all: true })).map(({ address }) => address);

/** The hosts that one run may connect to. */
export class EgressPolicy {
  readonly #allow: readonly HostPatterns[];
  readonly #internal: ReturnType<typeof addressSet>;
  readonly #resolve: Resolve;

  /** `narrowed`: further restrictions of the run's environment. Throws for invalid patterns or networks. */
  constructor(settings: EgressSettings, narrowed?: readonly string[], resolve: Resolve = systemResolve) {
    this.#allow = [hostPatterns(settings.allow), ...(narrowed ? [hostPatterns(narrowed)] : [])];
    this.#internal = addressSet(settings.internal);
    this.#resolve = resolve;
  }

  /**
   * Returns the addresses to connect to. A name is resolved once, here, and only these addresses may be used, because a
   * later resolution could differ. A name that is not allowed is not resolved.
   */
  async decide(host: string, port: number): Promise<Decision> {
    if (!this.#allow.every((patterns) => patterns.matches(host, port))) return { denied: "host_not_allowed" };
    const found = isIP(host) === 0 ? await this.#resolve(host).catch(() => []) : [host];
    if (found.length === 0) return { denied: "name_unknown" };
    const addresses = found.filter((address) => !isInternal(address) || this.#internal.has(address));
    return addresses.length > 0 ? { addresses } : { denied: "internal_address" };
  }
}
