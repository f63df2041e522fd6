import { expect, test } from "@jest/globals";
import { optional, readConfig } from "@millwright/config";
import { chosenKey } from "./chosen-key.ts";

const settings = { key: optional.custom("MILLWRIGHT_BOOTSTRAP_API_KEY", "", chosenKey) };
const read = (text: string | undefined) => readConfig({ MILLWRIGHT_BOOTSTRAP_API_KEY: text }, settings).key;

test.each([
  "foo",
  "mw_short",
  "a".repeat(40),
  "mw_abababababababab",
  "mw_has a space in its text",
  "mw_line\nbreak-and-more",
  `mw_${"0123456789".repeat(30)}`,
])("the weak or malformed key %j is refused without being repeated", (key) => {
  expect(() => read(key)).toThrow(
    /MILLWRIGHT_BOOTSTRAP_API_KEY must be 16 to 200 printable ASCII characters.*: it has /,
  );
  expect(() => read(key)).not.toThrow(`"${key}"`);
});

test.each(["mw_0a1b2c3d4e5f6a7b8c9d", "mw_the-owners-key-of-the-system-tests"])("the key %s is accepted", (key) => {
  expect(read(key)).toBe(key);
});

test("generates a key if none is set", () => {
  for (const text of [undefined, ""]) expect(read(text)).toBeUndefined();
});
