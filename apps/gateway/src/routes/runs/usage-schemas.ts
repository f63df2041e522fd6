import { z } from "zod";

const cost = () => z.number().min(0);
const InferenceUsage = z
  .object({
    token_count: z.object({ input: z.int(), input_cache_read: z.int(), input_cache_write: z.int(), output: z.int() }),
    cost_in_cents: z.object({
      input_cost_in_cents: cost(),
      input_cache_read_cost_in_cents: cost(),
      input_cache_write_cost_in_cents: cost(),
      output_cost_in_cents: cost(),
    }),
    web_search_count: z.int(),
    web_search_cost_in_cents: cost(),
  })
  .meta({ id: "InferenceUsage" });
const byModel = () => z.record(z.string(), InferenceUsage).optional();

/** Usage and cost of a run. Unknown values are omitted, never 0. */
export const RequestUsage = z
  .object({
    inference_cost: z.number().optional(),
    compute_cost: z.number().optional(),
    platform_cost: z.number().optional(),
    inference_cost_usd: z.number().optional(),
    compute_cost_usd: z.number().optional(),
    platform_cost_usd: z.number().optional(),
    total_tokens: z.int().optional(),
    model_token_usage: z
      .array(
        z.object({
          model_id: z.string(),
          total_tokens: z.int(),
          usage_type: z.enum(["warp", "byok", "custom_endpoint"]),
          tokens_by_category: z.record(z.string(), z.int()).optional(),
        }),
      )
      .optional(),
    usage_by_category: z
      .record(
        z.string(),
        z.object({
          platform_usage_in_cents: cost(),
          direct_api_inference_usage: byModel(),
          byok_inference_usage: byModel(),
          custom_endpoint_inference_usage: byModel(),
        }),
      )
      .optional(),
  })
  .meta({ id: "RequestUsage" });
