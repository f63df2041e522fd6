import { expect, test } from "@jest/globals";
import { lastLines } from "./last-lines.ts";

test.each([
  ["short\n", "short"],
  ["one two three\nfour\nfive\n", "four\nfive"],
  ["a single line that is too long", "…"],
])("of %j only whole lines are kept", (output, expected) => expect(lastLines(output, 12)).toBe(expected));
