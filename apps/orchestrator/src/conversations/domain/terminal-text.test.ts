import { expect, test } from "@jest/globals";
import { terminalText } from "./terminal-text.ts";

test.each([
  ["plain\ttext\n", "plain\ttext\n"],
  ["\u001b[1;31mred\u001b[0m and \u001b[38;5;12mblue\u001b[m", "red and blue"],
  ["10 %\r50 %\r100 %\ndone", "100 %\ndone"],
  ["longer line\rshort", "shortr line"],
  ["longer line\r\u001b[Kshort", "short"],
  ["abc\u001b[1K", "   "],
  ["abc\u001b[2Kd", "   d"],
  ["windows\r\nlines\r\n", "windows\nlines\n"],
  ["a\b\b\bb", "b"],
  ["\u001b]0;title\u0007text", "text"],
  ["\u001b]8;;https://evil.example\u001b\\link\u001b]8;;\u001b\\", "link"],
  ["\u001bP1$r\u001b\\x\u001b_apc\u001b\\y", "xy"],
  ["\u009b31mx\u009d0;t\u009cy", "xy"],
  ["bell\u0007 nul\u0000 del\u007f", "bell nul del"],
  ["\u001b(B\u001b7\u001b=x", "x"],
  ["cut off \u001b[31", "cut off "],
  ["cut off \u001b]0;ti", "cut off "],
  ["\u001b", ""],
  ["wide 漢字 and 😀\rW", "Wide 漢字 and 😀"],
  ["\u001b[10;10Hmoved", "moved"],
  ["", ""],
])("%j is shown as %j", (written, shown) => expect(terminalText(written)).toBe(shown));

test("removes all control characters from any output, in linear time", () => {
  const alphabet = ["\u001b", "[", "]", "P", "0", ";", "K", "m", "\r", "\b", "\u0007", "\u009b", "\\", "x", " ", "漢"];
  let seed = 7;
  const next = (): string => alphabet[(seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % alphabet.length]!;
  const written = Array.from({ length: 200_000 }, next).join("");
  // oxlint-disable-next-line no-control-regex -- the pattern matches control characters
  expect(terminalText(written)).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
});
