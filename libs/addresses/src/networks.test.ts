import { expect, test } from "@jest/globals";
import { canonicalNetworks } from "./networks.ts";

test("normalises networks to one spelling and sorts them, IPv4 first", () =>
  expect(
    canonicalNetworks([
      "2001:DB8:0::/32",
      "203.0.113.9",
      "10.1.2.3/8",
      "9.0.0.0/8",
      "10.0.0.0/8",
      "10.0.0.0/16",
      "2001:db8:0:0:0:0:0:1",
      "::ffff:1.2.3.4",
      "0.0.0.0/0",
      "::/0",
    ]),
  ).toEqual([
    "0.0.0.0/0",
    "9.0.0.0/8",
    "10.0.0.0/8",
    "10.0.0.0/16",
    "203.0.113.9/32",
    "::/0",
    "::ffff:102:304/128",
    "2001:db8::/32",
    "2001:db8::1/128",
  ]));

test.each([
  "",
  "host",
  "10.0.0.0/33",
  "10.0.0.0/",
  "10.0.0.0/-1",
  "10.0.0.0/8/8",
  "::/129",
  "fe80::1%eth0",
  "010.0.0.1",
  "1.2.3",
])("rejects %j", (text) => expect(() => canonicalNetworks([text])).toThrow(/no address or network/));
