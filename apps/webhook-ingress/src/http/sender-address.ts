import { BlockList, isIP } from "node:net";

/** Which peers are proxies of ours, whose `X-Forwarded-For` may be believed. */
export class TrustedProxies {
  readonly #list = new BlockList();

  /** Addresses and networks (`10.0.0.0/8`, `::1`). Errors: a plain Error naming one that is neither. */
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

/** Whom a budget is kept for: the peer, or the last address in front of our own proxies. An IPv6 sender is its /64. */
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
    if (isIP(before) === 0) break; // what a proxy passed on is not an address: the proxy itself is all we know
    address = before;
  }
  return isIP(address) === 6 ? `${firstGroups(address)}::/64` : address;
}

/** An IPv4 address however it is wrapped. */
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, "");

/** The first four groups of an IPv6 address in full. */
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
