import { lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { callbackify } from "node:util";
import { addressSet, isInternal } from "@millwright/addresses";
import { Agent, buildConnector, fetch as undiciFetch } from "undici";

/** An address that people of a team have set leads into the network of the platform, and its operator has not allowed that. */
export class InternalAddressRefused extends Error {
  constructor(host: string) {
    super(
      `${host} is an internal address, which is not reached unless the operator allows it (MILLWRIGHT_ALLOWED_INTERNAL_HOSTS).`,
    );
    this.name = "InternalAddressRefused";
  }
}

/** What may be reached at addresses that people of a team have set: the outside, and what the operator allows of the inside. */
export type OutboundRule = {
  /** Whether a host can be refused without asking for its address: it is one itself, or the machine's own name. */
  refuses(host: string): boolean;
  /** The addresses to connect to. Errors: InternalAddressRefused; those of the resolver. */
  addressesOf(host: string): Promise<readonly string[]>;
  /** For `node:net` and `node:http`, for hosts that are not refused: connects to no other address than was judged. */
  readonly lookup: LookupFunction;
  /** Judges every connection, those of redirects too. */
  readonly fetch: typeof fetch;
};

export type Resolve = (host: string) => Promise<readonly string[]>;

/**
 * @param allowed hosts (`ollama`, `*.corp.example`), addresses and networks (`10.1.0.0/16`) of the inside that may be reached; `*` = all
 * Errors: throws for a text that is none.
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

/** The refusal that an error comes from, wherever a client has wrapped it. */
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
