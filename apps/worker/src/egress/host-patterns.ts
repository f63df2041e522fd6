/** The ports of a pattern that specifies none. */
const WEB_PORTS = [80, 443];

/** `example.com`, `*.example.com`, `*` or an address, optionally followed by `:port` or `:*`. */
const PATTERN = /^(\*|(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(?::(\d{1,5}|\*))?$/;

export type HostPatterns = { matches(host: string, port: number): boolean };

/**
 * Parses host patterns. `*.example.com` matches every host below the domain but not the domain itself. Without a port,
 * 80 and 443 match. Throws for an invalid pattern.
 */
export function hostPatterns(texts: readonly string[]): HostPatterns {
  const patterns = texts.map(parse);
  return {
    matches: (host, port) =>
      patterns.some((pattern) => pattern.ports(port) && pattern.host(host.toLowerCase().replace(/\.$/, ""))),
  };
}

function parse(text: string): { host: (host: string) => boolean; ports: (port: number) => boolean } {
  const [, host, port] = PATTERN.exec(text.trim().toLowerCase()) ?? [];
  if (host === undefined || Number(port ?? 1) > 65_535)
    throw new Error(`"${text}" is not a host such as example.com, *.example.com or example.com:8443`);
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  return {
    host:
      host === "*"
        ? () => true
        : host.startsWith("*.")
          ? (name) => name.endsWith(host.slice(1)) && name.length > host.length - 1
          : (name) => name === bare,
    ports:
      port === "*"
        ? () => true
        : (number) => (port === undefined ? WEB_PORTS.includes(number) : number === Number(port)),
  };
}
