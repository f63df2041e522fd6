import { expect, test } from "@jest/globals";
import { isoDuration } from "./json-values.ts";

test.each([
  [0, "PT0S"],
  [1_500, "PT1.5S"],
  [60_000, "PT1M"],
  [150_000, "PT2M30S"],
  [3_600_000, "PT1H"],
  [3_661_250, "PT1H1M1.25S"],
])("%i ms is %s", (ms, text) => expect(isoDuration(ms)).toBe(text));
