import { expect, test } from "@jest/globals";
import { lastLines } from "./last-lines.ts";

test.each([
  ["short\n", "short"],
  ["one two three\nfour\nfive\n", "four\nfive"],
  ["a single line that is too long", "…"],
])("returns only complete lines of %j", (output, expected) => expect(lastLines(output, 12)).toBe(expected));
