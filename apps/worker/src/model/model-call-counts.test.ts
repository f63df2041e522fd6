import { expect, test } from "@jest/globals";
import { ModelCallCounts } from "./model-call-counts.ts";

test("reports each call once, and again if the report was not received", () => {
  const counts = new ModelCallCounts();
  counts.add("anthropic", "ok");
  counts.add("anthropic", "ok");
  counts.add("openai", "model_unavailable");
  const unheard = counts.take();
  expect(unheard).toEqual([
    { provider: "anthropic", outcome: "ok", count: 2 },
    { provider: "openai", outcome: "model_unavailable", count: 1 },
  ]);
  counts.add("anthropic", "ok");
  counts.putBack(unheard);
  expect(counts.take()).toEqual([
    { provider: "anthropic", outcome: "ok", count: 3 },
    { provider: "openai", outcome: "model_unavailable", count: 1 },
  ]);
  expect(counts.take()).toEqual([]);
});
