import { describe, expect, test } from "@jest/globals";
import { printable, printableJson } from "./printable.ts";

describe("untrusted text is printed without", () => {
  test.each([
    ["colours", "a\u001b[31mred\u001b[0mb", "aredb"],
    ["cursor movement and erasing", "safe\u001b[2K\u001b[1A\u001b[1;1Hx", "safex"],
    ["private modes", "\u001b[?1049hx\u001b[?25l", "x"],
    [
      "window titles and hyperlinks",
      "\u001b]0;title\u0007a\u001b]8;;https://evil.test\u001b\\link\u001b]8;;\u001b\\",
      "alink",
    ],
    ["clipboard writes", "\u001b]52;c;ZWNobw==\u0007x", "x"],
    ["device control strings", "\u001bP1$r0m\u001b\\x\u001b_payload\u001b\\y", "xy"],
    ["one-character forms (C1)", "\u009b31mx\u009d0;t\u009cy\u0090z\u009c", "xy"],
    ["strings without an end", "\u001b]0;title\nnext line", "\nnext line"],
    ["other escapes", "\u001bcx\u001b(0y\u001b7z", "xyz"],
    ["an escape at the end", "x\u001b", "x"],
    ["carriage returns, backspaces and bells", "real\rfake\b\b\u0007", "realfake"],
    ["bidirectional controls", "a\u202eb\u2066c\u2069\u200f\u061cd", "abcd"],
    ["separators that some terminals break lines at", "a\u2028b\u0085c", "abc"],
    ["sequences that appear when another one is removed", "\u001b\u001b[31m[31mx", "[31mx"],
  ])("%s", (_what, text, shown) => {
    expect(printable(text)).toBe(shown);
  });

  test("but with tabs, line feeds and every other character", () => {
    const text = "a\tb\nzażółć 日本語 עברית 👩‍💻";
    expect(printable(text)).toBe(text);
  });
});

test("JSON has the same value after control characters are escaped", () => {
  const value = { title: "\u001b[31m\u009b\u202e\u007f\u2028\n\u0085 ok", nested: ["é"] };
  const json = printableJson(JSON.stringify(value, null, 2));
  expect(JSON.parse(json)).toEqual(value);
  // oxlint-disable-next-line no-control-regex -- these must be absent
  expect(json).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e\u2028]/);
});
