import { expect, test } from "@jest/globals";
import { meteredTokens, requestUsage, type ModelUsage, type PriceVersion } from "./usage.ts";

const PRICE: PriceVersion = {
  version: 1,
  inputPerMillionMicros: 3_000_000n,
  outputPerMillionMicros: 15_000_000n,
  cacheReadPerMillionMicros: 300_000n,
};
const FREE: PriceVersion = { version: 1, inputPerMillionMicros: 0n, outputPerMillionMicros: 0n };
const usage = (over: Partial<ModelUsage>): ModelUsage => ({
  modelId: "m",
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  costMicros: 0n,
  unmeasured: 0,
  unpriced: 0,
  price: PRICE,
  ...over,
});

test("returns undefined if nothing was metered", () => expect(requestUsage([])).toBeUndefined());

test("the scripted model has usage 0", () =>
  expect(requestUsage([usage({ modelId: "scripted", price: FREE })])).toMatchObject({
    inference_cost_usd: 0,
    total_tokens: 0,
    model_token_usage: [{ model_id: "scripted", total_tokens: 0, usage_type: "warp" }],
    usage_by_category: {
      primary_agent: {
        platform_usage_in_cents: 0,
        direct_api_inference_usage: { scripted: { token_count: { input: 0 } } },
      },
    },
  }));

test("sums usage at several prices, and the cents per kind of token sum to the cost", () => {
  const shown = requestUsage([
    usage({ input: 1000, output: 100, costMicros: 4500n }),
    usage({ input: 1000, output: 0, costMicros: 3000n }),
  ]);
  expect(shown).toMatchObject({
    inference_cost_usd: 0.0075,
    total_tokens: 2100,
    model_token_usage: [{ model_id: "m", total_tokens: 2100, usage_type: "byok" }],
  });
  expect(shown).toMatchObject({
    usage_by_category: {
      primary_agent: {
        byok_inference_usage: { m: { cost_in_cents: { input_cost_in_cents: 0.6, output_cost_in_cents: 0.15 } } },
      },
    },
  });
});

test("a cost that the provider states is shown, and not divided by kind of token", () => {
  const { price: _, ...stated } = usage({ input: 1000, output: 100, costMicros: 777n });
  const shown = requestUsage([usage({ input: 1000, costMicros: 3000n }), stated]);
  expect(shown).toMatchObject({ inference_cost_usd: 0.003777, total_tokens: 2100 });
  expect(shown).not.toHaveProperty("usage_by_category");
});

test("metered tokens are absent where nothing was metered, never 0", () => {
  expect(meteredTokens([])).toEqual({ unmeasuredCalls: 0 });
  expect(meteredTokens([usage({ input: 5, cacheRead: 2 }), usage({ output: 3, unmeasured: 2 })])).toEqual({
    meteredTokens: 10,
    unmeasuredCalls: 2,
  });
});

test("usage_type distinguishes the operator's access, a team's own key and a team's own server", () => {
  const rows = [
    usage({ input: 1, access: "operator" }),
    usage({ input: 2, access: "team" }),
    usage({ input: 4 }),
    usage({ input: 8, access: "team_endpoint" }),
  ];
  const shown = requestUsage(rows) as {
    model_token_usage: { usage_type: string; total_tokens: number }[];
    usage_by_category: { primary_agent: object };
  };
  expect(shown.model_token_usage.map(({ usage_type: type, total_tokens: tokens }) => [type, tokens])).toEqual([
    ["warp", 1],
    ["byok", 6],
    ["custom_endpoint", 8],
  ]);
  expect(shown.usage_by_category.primary_agent).toMatchObject({
    direct_api_inference_usage: { m: { token_count: { input: 1 } } },
    byok_inference_usage: { m: { token_count: { input: 6 } } },
    custom_endpoint_inference_usage: { m: { token_count: { input: 8 } } },
  });
});

test("an unknown price leaves the costs out, not the tokens", () => {
  const shown = requestUsage([usage({ input: 10, output: 1, unpriced: 1 })]);
  expect(shown).toMatchObject({ total_tokens: 11 });
  expect(shown).not.toHaveProperty("inference_cost_usd");
  expect(shown).not.toHaveProperty("usage_by_category");
});

test("omits sums with unmeasured values", () =>
  expect(requestUsage([usage({ output: 5, unmeasured: 1, unpriced: 1 })])).toEqual({}));
