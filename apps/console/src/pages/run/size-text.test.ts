import { expect, test } from "@jest/globals";
import { sizeText } from "./size-text.ts";

test.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [1024, "1.0 KB"],
  [1536, "1.5 KB"],
  [20 * 1024 * 1024, "20 MB"],
  [5 * 1024 ** 4, "5120 GB"],
])("shows %d bytes as %s", (bytes, text) => expect(sizeText(bytes)).toBe(text));

test("shows nothing for an unknown size", () => expect(sizeText(undefined)).toBeUndefined());
