import { expect, test } from "@jest/globals";
import { canonicalJson, omitUndefined } from "./index.ts";

test("equal values have equal texts, independent of the order of their members", () => {
  expect(canonicalJson({ b: [{ d: 1, c: null }], a: undefined })).toBe('{"b":[{"c":null,"d":1}]}');
  expect(canonicalJson({ x: 1, y: 2 })).toBe(canonicalJson({ y: 2, x: 1 }));
});

test("the order of a list matters", () => expect(canonicalJson([1, 2])).not.toBe(canonicalJson([2, 1])));

test("undefined becomes the empty text", () => expect(canonicalJson(undefined)).toBe(""));

test("null is retained, undefined is removed", () =>
  expect(omitUndefined({ a: null, b: undefined, c: 0 })).toEqual({ a: null, c: 0 }));
