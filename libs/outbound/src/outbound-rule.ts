import { lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { callbackify } from "node:util";
import { addressSet, isInternal } from "@millwright/addresses";
import { Agent, buildConnector, fetch as undiciFetch } from "undici";

/** Thrown if an address set by a team leads into the platform's network and the operator has not allowed it. */
export class InternalAddressRefused extends Error {
  constructor(host: string) {
    super(`${host} is an internal address. To allow it, the operator adds it to MILLWRIGHT_ALLOWED_INTERNAL_HOSTS.`);
    this.name = "InternalAddressRefused";
  }
}

/**
 * The rule for connections to addresses set by teams: external hosts, and the internal ones that the operator allows.
 */
export type OutboundRule = {
  /** Returns whether a host can be refused without a lookup: it is an address, or the machine's own name. */
  refuses(host: string): boolean;
  /** Returns the addresses to connect to. Errors: InternalAddressRefused; those of the resolver. */
  addressesOf(host: string): Promise<readonly string[]>;
  /** For `node:net` and `node:http`: connects only to the address that was checked. */
  readonly lookup: LookupFunction;
  /** Checks every connection, including those of redirects. */
  readonly fetch: typeof fetch;
};

export type Resolve = (host: string) => Promise<readonly string[]>;

/**
 * @param allowed internal hosts (`ollama`, `*.corp.example`), addresses and networks (`10.1.0.0/16`) that may be
 * reached; `*` = all
 * Throws for an invalid text.
 */
export function outboundRule(allowed: readonly string[], resolve: Resolve = systemResolve): OutboundRule {
  const texts = allowed.map((text) => text.trim().toLowerCase());
  const networks = addressSet(texts.filter((text) => isIP(text.split("/")[0] ?? "") !== 0));
  const names = texts.filter((text) => isIP(text.split("/")[0] ?? "") === 0);
  const wrong = names.find((name) => !NAME.test(name));
  if (wrong !== undefined) throw new Error(`"${wrong}" is no host, address or network`);
  const isNamed = (host: string): boolean =>
    names.some((name) => name === "*" || name === host || (name.startsWith("*.") && host.endsWith(name.slice(1))));
  const mayReach = (host: string, address: string): boolean =>
    isNamed(host) || !isInternal(address) || networks.has(address);

  const refuses = (text: string): boolean => {
    const host = bare(text);
    if (isIP(host) !== 0) return !mayReach(host, host);
    return LOCAL.test(host) && !isNamed(host) && !networks.has("127.0.0.1");
  };
  const addressesOf = async (text: string): Promise<readonly string[]> => {
    const host = bare(text);
    const found = isIP(host) === 0 ? await resolve(host) : [host];
    const open = found.filter((address) => mayReach(host, address));
    if (open.length === 0) throw new InternalAddressRefused(host);
    return open;
  };
  const askAddresses = callbackify(addressesOf);
  const lookup: LookupFunction = (host, options, callback) => {
    askAddresses(host, (error, addresses) => {
      if (error) return callback(error, "");
      const all = addresses
        .map((address) => ({ address, family: isIP(address) }))
        .filter(({ family }) => !options.family || options.family === family);
      const [first] = all;
      if (!first) callback(new InternalAddressRefused(host), "");
      else if (options.all) callback(null, all);
      else callback(null, first.address, first.family);
    });
  };
  const connect = buildConnector({ lookup });
  const dispatcher = new Agent({
    connect: (options, callback) =>
      refuses(options.hostname)
        ? callback(new InternalAddressRefused(bare(options.hostname)), null)
        : connect(options, callback),
  });
  const guarded = (input: Parameters<typeof undiciFetch>[0], init?: Parameters<typeof undiciFetch>[1]) =>
    undiciFetch(input, { ...init, dispatcher });
  return { refuses, addressesOf, lookup, fetch: guarded as unknown as typeof fetch };
}

/** Returns the refusal in the chain of causes of an error, if any. */
export function refusalIn(error: unknown): InternalAddressRefused | undefined {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 6; cause = cause.cause, depth += 1)
    if (cause instanceof InternalAddressRefused) return cause;
  return undefined;
}

const NAME = /^(?:\*|(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)$/;
const LOCAL = /^(?:.+\.)?localhost$/;
const bare = (host: string): string =>
  host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");

const systemResolve: Resolve = (host) =>
  new Promise((resolve, reject) =>
    systemLookup(host, { all: true }, (error, found) =>
      error ? reject(error) : resolve(found.map(({ address }) => address)),
    ),
  );
