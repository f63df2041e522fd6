import { expect, test } from "@jest/globals";
import { addressSet, isInternal } from "./addresses.ts";

test.each([
  ...[
    "127.0.0.1",
    "127.8.8.8",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
  ],
  ...[
    "::1",
    "::",
    "fe80::1",
    "fd00::1",
    "fc00::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:a9fe:a9fe",
    "64:ff9b::10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    "fe80::1%eth0",
  ],
  ...["localhost", "", "1.2.3"],
])("%s is internal", (address) => expect(isInternal(address)).toBe(true));

test.each([
  "1.1.1.1",
  "172.32.0.1",
  "8.8.8.8",
  "2606:4700:4700::1111",
  "::ffff:1.1.1.1",
  "64:ff9b::1.1.1.1",
  "64:ff9b::808:808",
])("%s is not internal", (address) => expect(isInternal(address)).toBe(false));

test("a set contains networks and single addresses, and refuses other texts", () => {
  const set = addressSet(["10.1.0.0/16", "192.168.1.5", "fd00::/8"]);
  expect(["10.1.2.3", "192.168.1.5", "fd12::1", "::ffff:10.1.2.3"].map((one) => set.has(one))).toEqual([
    true,
    true,
    true,
    true,
  ]);
  expect(["10.2.0.1", "192.168.1.6", "fe80::1", "host"].map((one) => set.has(one))).toEqual([
    false,
    false,
    false,
    false,
  ]);
  for (const text of ["host", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/x", "fd00::/129", ""])
    expect(() => addressSet([text])).toThrow(/no address/);
});
