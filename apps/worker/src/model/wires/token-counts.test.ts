import { expect, test } from "@jest/globals";
import { countsIn, tokenCounts } from "./token-counts.ts";

const COUNTED = { prompt_tokens: 10, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 4 } };
const TOKENS = { inputTokens: 6, outputTokens: 2, inputCacheReadTokens: 4 };

test.each([
  ["a cost", { cost: 0.00123456 }, { costMicros: 1235 }],
  ["a cost of nothing", { cost: 0 }, { costMicros: 0 }],
  ["no cost", {}, {}],
  ["a cost that is no amount", { cost: "0.1" }, {}],
  ["a negative cost", { cost: -1 }, {}],
  ["a cost that is too large to be an integer of micro-dollars", { cost: 1e300 }, {}],
  ["a million dollars", { cost: 1_000_000 }, { costMicros: 1_000_000_000_000 }],
  ["more than a million dollars", { cost: 1_000_000.01 }, {}],
  ["an infinite cost", { cost: Infinity }, {}],
])("a provider that states %s", (_, stated, expected) => {
  const raw = { ...COUNTED, ...stated };
  expect(countsIn({ usage: raw })).toEqual({ ...TOKENS, ...expected });
  const details = { noCacheTokens: 6, cacheReadTokens: 4, cacheWriteTokens: undefined };
  const outputTokenDetails = { textTokens: 2, reasoningTokens: undefined };
  const totals = { inputTokens: 10, outputTokens: 2, totalTokens: 12 };
  expect(tokenCounts({ ...totals, inputTokenDetails: details, outputTokenDetails, raw })).toEqual({
    ...TOKENS,
    ...expected,
  });
});

test.each([
  ["a fraction", 2.5],
  ["a negative number", -1],
  ["larger than a safe integer", 1e20],
  ["no number", "2"],
])("a count that is %s is treated as not counted", (_, output) => {
  expect(countsIn({ usage: { ...COUNTED, completion_tokens: output } })).toEqual({
    inputTokens: 6,
    inputCacheReadTokens: 4,
  });
  const inputTokenDetails = { noCacheTokens: 6, cacheReadTokens: 4, cacheWriteTokens: undefined };
  const outputTokenDetails = { textTokens: undefined, reasoningTokens: undefined };
  const counted = { inputTokens: 10, outputTokens: output as number, totalTokens: 12, inputTokenDetails };
  expect(tokenCounts({ ...counted, outputTokenDetails, raw: COUNTED })).toEqual({
    inputTokens: 6,
    inputCacheReadTokens: 4,
  });
});
