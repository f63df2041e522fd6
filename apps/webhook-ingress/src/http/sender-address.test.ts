import { expect, test } from "@jest/globals";
import { senderAddress, TrustedProxies } from "./sender-address.ts";

const none = new TrustedProxies([]);
const proxies = new TrustedProxies(["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"]);

test.each<[string, string | undefined, string | undefined, TrustedProxies, string]>([
  ["the peer", "203.0.113.9", undefined, none, "203.0.113.9"],
  ["the peer, whatever it claims", "203.0.113.9", "1.1.1.1", none, "203.0.113.9"],
  ["the sender behind a trusted proxy", "10.1.2.3", "198.51.100.4", proxies, "198.51.100.4"],
  ["the sender behind several trusted proxies", "192.0.2.7", "198.51.100.4, 10.0.0.1", proxies, "198.51.100.4"],
  [
    "the proxy's own entry, not earlier ones that the sender wrote",
    "10.1.2.3",
    "1.1.1.1, 198.51.100.4",
    proxies,
    "198.51.100.4",
  ],
  ["the proxy, if it sends no header", "10.1.2.3", undefined, proxies, "10.1.2.3"],
  ["the proxy, if its header is invalid", "10.1.2.3", "unknown", proxies, "10.1.2.3"],
  ["an IPv4 address however wrapped", "::ffff:203.0.113.9", undefined, none, "203.0.113.9"],
  ["an IPv6 network", "2001:0db8:0001:0000:aaaa::1", undefined, none, "2001:db8:1:0::/64"],
  ["the same network", "2001:db8:1::bbbb", undefined, none, "2001:db8:1:0::/64"],
  ["an IPv6 address behind an IPv6 proxy", "2001:db8::1", "2400:cb00::5", proxies, "2400:cb00:0:0::/64"],
  ["an unknown peer", undefined, undefined, none, "unknown"],
])("identifies the sender: %s", (_what, peer, forwarded, trusted, expected) =>
  expect(senderAddress(peer, forwarded, trusted)).toBe(expected),
);

test.each(["x", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/x", "2001:db8::/129"])("%s is not a network", (text) =>
  expect(() => new TrustedProxies([text])).toThrow(text),
);
