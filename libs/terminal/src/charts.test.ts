import { expect, test } from "@jest/globals";
import { bar, sparkline } from "./index.ts";

test.each([
  [0, 10, "", ""],
  [10, 10, "####", "████"],
  [5, 10, "##", "██"],
  [0.01, 10, "#", "▏"],
  [9, 10, "####", "███▋"],
  [3, 0, "", ""],
  [20, 10, "####", "████"],
])("a bar of %d of %d is %j in ASCII, %j in blocks", (value, most, plain, blocks) => {
  expect([bar(value, most, true, 4), bar(value, most, false, 4)]).toEqual([plain, blocks]);
});

test.each<[(number | null)[], string, string]>([
  [[0, 7, 3], "_@=", "▁█▄"],
  [[null, 1], " @", " █"],
  [[0, 0], "__", "▁▁"],
  [[], "", ""],
])("the line of %j is %j in ASCII, %j in blocks", (values, plain, blocks) => {
  expect([sparkline(values, true), sparkline(values, false)]).toEqual([plain, blocks]);
});
