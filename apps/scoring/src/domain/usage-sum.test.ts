import { expect, test } from "@jest/globals";
import { sumUsage } from "./usage-sum.ts";

test("numbers of several usages are added at any depth, lists are joined", () => {
  const first = {
    total_tokens: 3,
    usage_by_category: { primary_agent: { platform_usage_in_cents: 0.5 } },
    model_token_usage: [{ model_id: "m", total_tokens: 3 }],
  };
  const second = {
    total_tokens: 4,
    inference_cost: 1,
    usage_by_category: { primary_agent: { platform_usage_in_cents: 0.25 } },
    model_token_usage: [{ model_id: "m", total_tokens: 4 }],
  };
  expect(sumUsage([first, undefined, second])).toEqual({
    total_tokens: 7,
    inference_cost: 1,
    usage_by_category: { primary_agent: { platform_usage_in_cents: 0.75 } },
    model_token_usage: [
      { model_id: "m", total_tokens: 3 },
      { model_id: "m", total_tokens: 4 },
    ],
  });
});

test("runs without usage have no sum", () => expect(sumUsage([undefined])).toBeNull());
