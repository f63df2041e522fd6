import { BlockList, isIP } from "node:net";

/**
 * Special-purpose address ranges (IANA registries): loopback, private, link-local, cloud metadata and reserved
 * networks.
 */
const INTERNAL = [
  ...[
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
  ],
  ...["198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"],
  ...[
    "::/128",
    "::1/128",
    "64:ff9b:1::/48",
    "100::/64",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
  ],
];
/** Prefix of addresses that embed an IPv4 address in their last 32 bits, which are checked instead (RFC 6052). */
const TRANSLATED = "64:ff9b::/96";

/**
 * Builds a set of addresses from texts such as `10.1.0.0/16`, `192.168.1.5` or `fd00::/8`. Throws for an invalid text.
 */
export function addressSet(texts: readonly string[]): { has(address: string): boolean } {
  const list = new BlockList();
  for (const text of texts) {
    const [address = "", bits] = text.split("/");
    const version = isIP(address);
    const [length, most] = [bits === undefined ? undefined : Number(bits), version === 6 ? 128 : 32];
    if (
      version === 0 ||
      (length !== undefined && !(Number.isInteger(length) && length >= 0 && length <= most)) ||
      bits === ""
    )
      throw new Error(`${text} is no address or network`);
    list.addSubnet(address, length ?? most, version === 6 ? "ipv6" : "ipv4");
  }
  return { has: (address) => isIP(address) !== 0 && list.check(address, isIP(address) === 6 ? "ipv6" : "ipv4") };
}

const internal = addressSet(INTERNAL);
const translated = addressSet([TRANSLATED]);

/**
 * Returns whether an address is not publicly routable: loopback, private, link-local or similar. Text that is not an
 * address counts as internal.
 */
export function isInternal(address: string): boolean {
  if (isIP(address) === 0) return true;
  if (isIP(address) === 6 && translated.has(address)) return internal.has(lastFour(address));
  return internal.has(address); // an IPv4-mapped IPv6 address (::ffff:…) is checked as the IPv4 address
}

/** The IPv4 address in the last 32 bits of an IPv6 address. */
function lastFour(address: string): string {
  const dotted = /(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1];
  if (dotted) return dotted;
  const normal = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const groups = normal
    .split(":")
    .slice(-2)
    .map((group) => Number.parseInt(group || "0", 16));
  return groups.flatMap((group) => [group >> 8, group & 255]).join(".");
}
