import { expect, test } from "@jest/globals";
import { defaultInternalHosts, isLoopbackHost, LOOPBACK, type Exposure } from "./index.ts";

const local: Exposure = { host: "127.0.0.1", origins: [undefined, undefined], trustedProxies: [] };

test.each<[string, Partial<Exposure>, readonly string[]]>([
  ["by default", {}, LOOPBACK],
  ["by name", { host: "localhost" }, LOOPBACK],
  ["on IPv6", { host: "::1" }, LOOPBACK],
  ["with local origins", { origins: ["http://localhost:8080", "http://[::1]:8080"] }, LOOPBACK],
  ["on every address", { host: "0.0.0.0" }, []],
  ["on every IPv6 address", { host: "::" }, []],
  ["on an address of its network", { host: "10.0.0.5" }, []],
  ["under a public origin", { origins: ["https://millwright.example", undefined] }, []],
  ["under a public origin for webhooks", { origins: [undefined, "https://hooks.example"] }, []],
  ["under an origin that only resembles a local one", { origins: ["http://localhost.example"] }, []],
  ["behind a proxy", { trustedProxies: ["127.0.0.1"] }, []],
])("the default for a platform reached %s", (_how, exposure, expected) => {
  expect(defaultInternalHosts({ ...local, ...exposure })).toEqual(expected);
});

test.each([
  ["127.8.9.10", true],
  ["[::1]", true],
  ["::ffff:127.0.0.1", true],
  ["a.localhost", true],
  ["localhost.", true],
  ["128.0.0.1", false],
  ["", false],
])("whether %j is a loopback host: %j", (host, expected) => expect(isLoopbackHost(host)).toBe(expected));
