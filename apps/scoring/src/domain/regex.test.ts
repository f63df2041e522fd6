import { expect, test } from "@jest/globals";
import { compileRegex, PATTERN_CHARACTERS_MAX, RegexError } from "./regex.ts";

test.each([
  ["^abc$", "", "abc\n", false],
  ["^b$", "m", "a\nb\nc", true],
  ["a.c", "", "a\nc", false],
  ["a.c", "s", "a\nc", true],
  ["ÄB", "i", "äb", true],
  ["\\bword\\b", "", "swords", false],
])("the pattern %j with flags %j on %j: %s", (pattern, flags, text, expected) => {
  expect(compileRegex(pattern, flags).matches(text)).toBe(expected);
});

test.each([
  ["(a)\\1", ""],
  ["(?=a)", ""],
  ["a**", ""],
  ["(", ""],
  ["((a{1000}){1000}){1000}", ""],
  ["a", "g"],
  ["a".repeat(PATTERN_CHARACTERS_MAX + 1), ""],
])("refuses the pattern %j with flags %j", (pattern, flags) => {
  expect(() => compileRegex(pattern, flags)).toThrow(RegexError);
});

test("matches patterns that make backtracking matchers explode", () => {
  expect(compileRegex("^(a+)+$").matches(`${"a".repeat(100_000)}b`)).toBe(false);
});
