import { expect, test } from "@jest/globals";
import { hostPatterns } from "./host-patterns.ts";

test.each([
  ["example.com", "example.com", 443, true],
  ["example.com", "EXAMPLE.com.", 80, true],
  ["example.com", "example.com", 22, false],
  ["example.com", "www.example.com", 443, false],
  ["example.com", "example.com.evil.net", 443, false],
  ["*.example.com", "a.b.example.com", 443, true],
  ["*.example.com", "example.com", 443, false],
  ["*.example.com", ".example.com", 443, false],
  ["*.example.com", "notexample.com", 443, false],
  ["example.com:8443", "example.com", 8443, true],
  ["example.com:8443", "example.com", 443, false],
  ["example.com:*", "example.com", 22, true],
  ["*", "anything.net", 443, true],
  ["*", "anything.net", 25, false],
  ["*:*", "anything.net", 25, true],
  ["10.1.2.3:5432", "10.1.2.3", 5432, true],
  ["[fd00::1]:443", "fd00::1", 443, true],
])("%s and %s:%i: %s", (pattern, host, port, matches) =>
  expect(hostPatterns([pattern]).matches(host, port)).toBe(matches),
);

test("no pattern, no host", () => expect(hostPatterns([]).matches("example.com", 443)).toBe(false));

test.each([
  "",
  "http://example.com",
  "example.com/path",
  "a b",
  "*.*",
  "*example.com",
  "example.com:99999",
  "example..com",
  "exam*ple.com",
])("rejects the invalid pattern %j", (text) => expect(() => hostPatterns([text])).toThrow(/is not a host/));
