import { expect, test } from "@jest/globals";
import { chosenKey } from "./chosen-key.ts";

const setting = chosenKey("MILLWRIGHT_BOOTSTRAP_API_KEY");

test.each([
  "foo",
  "mw_short",
  "a".repeat(40),
  "mw_abababababababab",
  "mw_has a space in its text",
  "mw_line\nbreak-and-more",
  `mw_${"0123456789".repeat(30)}`,
])("the weak or malformed key %j is refused without being repeated", (key) => {
  const read = setting.read(key);
  expect(read).toMatchObject({ fault: expect.stringContaining("is too weak") });
  expect(JSON.stringify(read)).not.toContain(key);
});

test.each(["mw_0a1b2c3d4e5f6a7b8c9d", "mw_the-owners-key-of-the-system-tests"])("the key %s is accepted", (key) => {
  expect(setting.read(key)).toEqual({ value: key });
});

test("no key is a choice, too: one is generated", () => {
  for (const text of [undefined, ""]) expect(setting.read(text)).toEqual({ value: undefined });
});
