import { expect, test } from "@jest/globals";
import { csvOf } from "./save-file.ts";

test("quotes separators and quotes, leaves null empty and numbers bare", () =>
  expect(csvOf([["a,b", 'say "x"', null, -1.5, "two\nlines"]])).toBe('"a,b","say ""x""",,-1.5,"two\nlines"\r\n'));

test.each(["=1+1", "+1", "-1", "@a", "\ta"])("prefixes %j, which a spreadsheet would evaluate", (text) =>
  expect(csvOf([[text]])).toBe(`'${text}\r\n`),
);
