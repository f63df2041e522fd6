import { expect, test } from "@jest/globals";
import { isUuid, newEnvironmentUid, newUid, randomHex, randomToken, uidOf } from "./index.ts";

test("uids are UUIDv7 and sort in the order of creation", () => {
  const uids = Array.from({ length: 20_000 }, () => newUid());
  expect(uids.every((uid) => /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(uid))).toBe(
    true,
  );
  expect([...uids].sort()).toEqual(uids);
  expect(new Set(uids).size).toBe(uids.length);
});

test("the uid of a text is a UUIDv8, the same for every call", () => {
  expect(uidOf("second of a")).toBe("8c74c3cd-8773-8462-8c3b-4af23a2a9390");
});

test.each([
  ["0199c2f0-1111-7abc-8def-0123456789ab", true],
  ["0199C2F0-1111-4ABC-8DEF-0123456789AB", true],
  ["0199c2f011117abc8def0123456789ab", false],
  ["0199c2f0-1111-7abc-8def-0123456789ab\n", false],
  ["", false],
])("%j has the form of a UUID: %s", (text, expected) => expect(isUuid(text)).toBe(expected));

test("environment uids are 22 letters and digits", () => {
  for (let i = 0; i < 200; i++) expect(newEnvironmentUid()).toMatch(/^[A-Za-z0-9]{22}$/);
});

test("random digits have the requested length and differ each time", () => {
  const drawn = Array.from({ length: 1_000 }, () => randomHex(16));
  expect(drawn.every((text) => /^[0-9a-f]{32}$/.test(text))).toBe(true);
  expect(new Set(drawn).size).toBe(drawn.length);
});

test("tokens are URL-safe and have the length of their bytes", () => {
  expect(randomToken(32)).toMatch(/^[A-Za-z0-9_-]{43}$/);
  expect(randomToken(32)).not.toBe(randomToken(32));
});
