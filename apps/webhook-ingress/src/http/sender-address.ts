import { BlockList, isIP } from "node:net";

/** The proxies whose `X-Forwarded-For` is trusted. */
export class TrustedProxies {
  readonly #list = new BlockList();

  /** Accepts addresses and networks (`10.0.0.0/8`, `::1`). Throws an Error that names an invalid one. */
  constructor(networks: readonly string[]) {
    for (const network of networks) {
      const [address = "", bits] = network.split("/");
      const family = isIP(address) === 6 ? "ipv6" : "ipv4";
      const size = bits === undefined ? (family === "ipv6" ? 128 : 32) : /^\d{1,3}$/.test(bits) ? Number(bits) : NaN;
      if (isIP(address) === 0 || !(size <= (family === "ipv6" ? 128 : 32)))
        throw new Error(`"${network}" is neither an address nor a network.`);
      this.#list.addSubnet(address, size, family);
    }
  }

  has(address: string): boolean {
    const family = isIP(address);
    return family !== 0 && this.#list.check(address, family === 6 ? "ipv6" : "ipv4");
  }
}

/**
 * Returns the key of a sender's budget: the peer, or the last address in front of trusted proxies. An IPv6 sender is
 * its /64.
 */
export function senderAddress(
  peer: string | undefined,
  forwardedFor: string | undefined,
  proxies: TrustedProxies,
): string {
  const path = [...(forwardedFor ?? "").split(","), peer ?? ""]
    .map((part) => plain(part.trim()))
    .filter((part) => part !== "");
  let address = path.pop() ?? "unknown";
  while (proxies.has(address) && path.length > 0) {
    const before = path.pop()!;
    if (isIP(before) === 0) break; // the proxy forwarded something else, so only its own address is known
    address = before;
  }
  return isIP(address) === 6 ? `${firstGroups(address)}::/64` : address;
}

/** Unwraps an IPv4-mapped IPv6 address. */
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, "");

/** Returns the first four groups of an IPv6 address in full. */
function firstGroups(address: string): string {
  const [head = "", tail] = (address.split("%")[0] ?? "").toLowerCase().split("::");
  const groups = head === "" ? [] : head.split(":");
  const rest = tail === undefined || tail === "" ? [] : tail.split(":");
  const filled =
    tail === undefined
      ? groups
      : [...groups, ...Array<string>(Math.max(0, 8 - groups.length - rest.length)).fill("0"), ...rest];
  return filled
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ""))
    .join(":");
}
