import { createServer, get, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { readConfig } from "@millwright/config";
import {
  allowedInternalHosts,
  InternalAddressRefused,
  LOOPBACK,
  outboundRule,
  refusalIn,
  type OutboundRule,
} from "./index.ts";

const NAMES: Record<string, string[]> = {
  "inside.test": ["10.1.2.3"],
  "meta.test": ["169.254.169.254"],
  "both.test": ["127.0.0.1", "203.0.114.1"],
  "outside.test": ["8.8.8.8"],
  "here.test": ["127.0.0.1"],
};
const rule = (...allowed: string[]) =>
  outboundRule(allowed, async (host) => NAMES[host] ?? Promise.reject(new Error(`no ${host}`)));

test.each([
  "127.0.0.1",
  "[::1]",
  "10.0.0.1",
  "169.254.169.254",
  "192.168.1.1",
  "localhost",
  "api.localhost",
  "LOCALHOST.",
  "::ffff:127.0.0.1",
  "0.0.0.0",
])("%s is refused without a lookup, unless it is allowed", (host) => {
  expect([rule().refuses(host), rule("*").refuses(host)]).toEqual([true, false]);
});
test.each(["8.8.8.8", "example.com", "[2606:4700::1]"])("%s is not refused", (host) =>
  expect(rule().refuses(host)).toBe(false),
);

test("names are checked by their addresses; of an internal and an external address, only the external one is used", async () => {
  for (const host of ["inside.test", "meta.test", "here.test", "127.0.0.1"])
    await expect(rule().addressesOf(host)).rejects.toBeInstanceOf(InternalAddressRefused);
  expect([await rule().addressesOf("outside.test"), await rule().addressesOf("both.test")]).toEqual([
    ["8.8.8.8"],
    ["203.0.114.1"],
  ]);
  await expect(rule().addressesOf("nowhere.test")).rejects.toThrow("no nowhere.test");
});

test("the operator allows hosts by name, wildcard, address or network", async () => {
  expect(await rule("10.1.0.0/16").addressesOf("inside.test")).toEqual(["10.1.2.3"]);
  expect(await rule("INSIDE.test").addressesOf("inside.test")).toEqual(["10.1.2.3"]);
  expect(await rule("*.test").addressesOf("meta.test")).toEqual(["169.254.169.254"]);
  await expect(rule("*.inside.test", "10.2.0.0/16").addressesOf("inside.test")).rejects.toBeInstanceOf(
    InternalAddressRefused,
  );
  expect(["localhost", "127.0.0.1", "[::1]", "10.0.0.1"].map((host) => rule(...LOOPBACK).refuses(host))).toEqual([
    false,
    false,
    false,
    true,
  ]);
});

test("settings are parsed, or rejected by name", () => {
  const read = (text?: string) =>
    readConfig({ MILLWRIGHT_ALLOWED_INTERNAL_HOSTS: text }, { hosts: allowedInternalHosts }).hosts;
  expect([read(), read(""), read(" a.b , 10.0.0.0/8")]).toEqual([undefined, [], ["a.b", "10.0.0.0/8"]]);
  for (const text of ["http://x", "10.0.0.0/40", "a b"])
    expect(() => read(text)).toThrow(/MILLWRIGHT_ALLOWED_INTERNAL_HOSTS must be/);
});

describe("connections", () => {
  let server: Server;
  let port: number;
  beforeAll(async () => {
    server = createServer((request, response) =>
      request.url === "/away"
        ? response.writeHead(302, { location: `http://127.0.0.1:${port}/` }).end()
        : response.end("here"),
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    ({ port } = server.address() as AddressInfo);
  });
  afterAll(() => server.close().closeAllConnections());
  const fetched = (one: OutboundRule, host: string, path = "/") =>
    one.fetch(`http://${host}:${port}${path}`).then(
      (response) => response.text(),
      (error: unknown) => refusalIn(error)?.name,
    );

  test("are made to what is allowed, by fetch", async () =>
    expect(await fetched(rule("127.0.0.0/8"), "here.test")).toBe("here"));
  test.each(["here.test", "127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"])(
    "to %s are refused, by fetch",
    async (host) => expect(await fetched(rule(), host)).toBe("InternalAddressRefused"),
  );
  test("are checked again after a redirect", async () => {
    expect(await fetched(rule("here.test"), "here.test")).toBe("here");
    expect(await fetched(rule("here.test"), "here.test", "/away")).toBe("InternalAddressRefused");
  });
  test("are checked by lookup, too", async () => {
    const statusOf = (one: OutboundRule) =>
      new Promise((resolve) =>
        get({ host: "here.test", port, lookup: one.lookup }, (response) => resolve(response.resume().statusCode)).on(
          "error",
          (error) => resolve(refusalIn(error)?.name),
        ),
      );
    expect([await statusOf(rule()), await statusOf(rule("127.0.0.1"))]).toEqual(["InternalAddressRefused", 200]);
  });
});
