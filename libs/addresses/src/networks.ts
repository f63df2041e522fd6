import { isIP } from "node:net";

type Network = { readonly version: 4 | 6; readonly bits: number; readonly value: bigint };

const WIDTH = { 4: 32, 6: 128 } as const;

/**
 * Returns networks in their canonical spelling (RFC 4632, RFC 5952) without duplicates: host bits cleared, a bare
 * address as a network with one address; IPv4 before IPv6, by address and then the wider network first.
 *
 * Throws for a text that is not an address or network.
 */
export function canonicalNetworks(texts: readonly string[]): string[] {
  const networks = texts
    .map(parse)
    .toSorted((a, b) => a.version - b.version || compare(a.value, b.value) || a.bits - b.bits);
  return [...new Set(networks.map(format))];
}

function parse(text: string): Network {
  const [address = "", length, ...rest] = text.split("/");
  const version = isIP(address);
  const isLength = length === undefined || /^\d{1,3}$/.test(length);
  if (
    (version !== 4 && version !== 6) ||
    address.includes("%") ||
    rest.length > 0 ||
    !isLength ||
    Number(length ?? 0) > WIDTH[version]
  )
    throw new Error(`${text} is no address or network`);
  const bits = length === undefined ? WIDTH[version] : Number(length);
  const free = BigInt(WIDTH[version] - bits);
  return { version, bits, value: (numberOf(version, address) >> free) << free };
}

function numberOf(version: 4 | 6, address: string): bigint {
  if (version === 4) return address.split(".").reduce((sum, part) => (sum << 8n) + BigInt(part), 0n);
  const [head = "", tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const groups = (text: string | undefined): string[] => (text ? text.split(":") : []);
  const [left, right] = [groups(head), groups(tail)];
  const all = [...left, ...Array.from({ length: 8 - left.length - right.length }, () => "0"), ...right];
  return all.reduce((sum, group) => (sum << 16n) + BigInt(`0x${group}`), 0n);
}

function format({ version, bits, value }: Network): string {
  const part = (size: number, count: number) =>
    Array.from(
      { length: count },
      (_one, index) => (value >> BigInt(size * (count - 1 - index))) & ((1n << BigInt(size)) - 1n),
    );
  if (version === 4) return `${part(8, 4).join(".")}/${bits}`;
  return `${new URL(
    `http://[${part(16, 8)
      .map((group) => group.toString(16))
      .join(":")}]`,
  ).hostname.slice(1, -1)}/${bits}`;
}

const compare = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);
