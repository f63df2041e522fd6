import { expect, test } from "@jest/globals";
import { compileRegex, RegexError } from "./regex.ts";

test.each([
  ["abc", "", "xxabcxx", "match"],
  ["^abc$", "", "abc\n", "no_match"],
  ["^b$", "m", "a\nb\nc", "match"],
  ["a.c", "", "a\nc", "no_match"],
  ["a.c", "s", "a\nc", "match"],
  ["ÄB", "i", "äb", "match"],
  ["[^a-c]{2,3}d", "", "xyzd", "match"],
  ["[]x]+$", "", "]x]", "match"],
  ["(?:ab|cd)*ef", "", "abcdabef", "match"],
  ["(?P<name>a)?b", "", "b", "match"],
  ["\\bword\\b", "", "a word.", "match"],
  ["\\bword\\b", "", "swords", "no_match"],
  ["\\d{3}-\\w+", "", "555-x", "match"],
  ["\\p{Lu}\\x41", "", "ÖA", "match"],
  ["😀+", "", "a😀😀", "match"],
  ["a{0}", "", "", "match"],
])("the pattern %j with flags %j on %j: %s", (pattern, flags, text, expected) => {
  expect(compileRegex(pattern, flags).match(text)).toBe(expected);
});

test.each([
  ["\\p{Lu}\\x41\\u{42}", ""],
  ["(a)\\1", ""],
  ["(?=a)", ""],
  ["(?i)a", ""],
  ["a**", ""],
  ["a{2,1}", ""],
  ["(", ""],
  [")", ""],
  ["[a", ""],
  ["[z-a]", ""],
  ["*a", ""],
  ["a\\", ""],
  ["((a{1000}){1000}){1000}", ""],
  ["a", "g"],
])("refuses the pattern %j with flags %j", (pattern, flags) => {
  expect(() => compileRegex(pattern, flags)).toThrow(RegexError);
});

test("a pattern that makes backtracking matchers explode is matched in linear time", () => {
  expect(compileRegex("^(a+)+$").match(`${"a".repeat(100_000)}b`)).toBe("no_match");
});

test("a match that needs too many steps ends after the same number of them each time", () => {
  expect(compileRegex("(x?){900}y").match("x".repeat(200_000))).toBe("too_expensive");
});
