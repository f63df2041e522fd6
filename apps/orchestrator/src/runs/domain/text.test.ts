import { expect, test } from "@jest/globals";
import { storable, storableJson } from "./text.ts";

test.each([
  ["plain ⚙ 😀", "plain ⚙ 😀"],
  ["a\0b", "a\uFFFDb"],
  ["half \ud83d!", "half \uFFFD!"],
  ["\ude00 half", "\uFFFD half"],
])("%j is stored as %j", (text, expected) => expect(storable(text)).toBe(expected));

test("replaces unstorable characters in keys and nested values only", () => {
  expect(storableJson({ "k\0": [1, null, true, { x: "\0" }] })).toEqual({
    "k\uFFFD": [1, null, true, { x: "\uFFFD" }],
  });
});
