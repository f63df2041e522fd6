import { priceUsage, toCents, toDollars, type Price } from "@millwright/money";
import { SCRIPTED } from "./models.ts";
import type { JsonObject } from "./run.ts";

/** Tokens of one or more model calls; an absent count was not measured and is never 0. Cached tokens are not part of `input`. */
export type TokenCounts = { readonly input?: number; readonly output?: number; readonly cacheRead?: number; readonly cacheWrite?: number };

/** A price in force from some time on; usage keeps the version it was priced with. */
export type PriceVersion = Price & { readonly version: number };

/**
 * What one call costs in micro-dollars. Undefined when the model has no known price, or when what it is paid by was not
 * measured. Cached tokens that were not measured did not occur.
 */
export function costOf(tokens: TokenCounts, price: PriceVersion | undefined): bigint | undefined {
  if (!price || tokens.input === undefined || tokens.output === undefined) return undefined;
  return priceUsage({ ...tokens, input: tokens.input, output: tokens.output }, price);
}

/** All usage of one run with one model at one price. Sums skip what was not measured; `unpriced` and `unmeasured` count such calls. */
export type ModelUsage = {
  readonly modelId: string;
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly costMicros: bigint;
  /** Calls whose input or output was not measured. */
  readonly unmeasured: number;
  /** Calls without a cost. */
  readonly unpriced: number;
  readonly price?: PriceVersion;
};

/**
 * RequestUsage of a run (fields-runs §6.6): what is unknown is left out, never 0. Undefined when nothing was metered.
 * Credits and the costs of computing and of the platform are not charged here, so they are never known.
 */
export function requestUsage(usages: readonly ModelUsage[]): JsonObject | undefined {
  if (usages.length === 0) return undefined;
  const isMeasured = usages.every(({ unmeasured }) => unmeasured === 0);
  const isPriced = usages.every(({ unpriced }) => unpriced === 0);
  const models = [...new Set(usages.map(({ modelId }) => modelId))];
  const byModel = models.map((modelId): [string, ModelUsage[]] => [modelId, usages.filter((usage) => usage.modelId === modelId)]);
  return {
    ...(isPriced ? { inference_cost_usd: toDollars(usages.reduce((sum, { costMicros }) => sum + costMicros, 0n)) } : {}),
    ...(isMeasured ? { total_tokens: usages.reduce((sum, usage) => sum + totalOf(usage), 0) } : {}),
    ...(isMeasured
      ? {
          model_token_usage: byModel.map(([modelId, rows]) => {
            const total = rows.reduce((sum, usage) => sum + totalOf(usage), 0);
            return { model_id: modelId, total_tokens: total, usage_type: usageType(modelId), tokens_by_category: { primary_agent: total } };
          }),
        }
      : {}),
    ...(isMeasured && isPriced ? { usage_by_category: { primary_agent: categoryUsage(byModel) } } : {}),
  };
}

const totalOf = ({ input, output, cacheRead, cacheWrite }: ModelUsage): number => input + output + cacheRead + cacheWrite;

/** Keys of providers are the operator's or the team's own; only the built-in model is provided by the service. */
const usageType = (modelId: string): "warp" | "byok" => (modelId === SCRIPTED ? "warp" : "byok");

function categoryUsage(byModel: readonly [string, readonly ModelUsage[]][]): JsonObject {
  const ownKeys = byModel.filter(([modelId]) => usageType(modelId) === "byok");
  const provided = byModel.filter(([modelId]) => usageType(modelId) === "warp");
  return {
    platform_usage_in_cents: 0,
    ...(provided.length > 0 ? { direct_api_inference_usage: inferenceUsages(provided) } : {}),
    ...(ownKeys.length > 0 ? { byok_inference_usage: inferenceUsages(ownKeys) } : {}),
  };
}

const inferenceUsages = (byModel: readonly [string, readonly ModelUsage[]][]): JsonObject =>
  Object.fromEntries(byModel.map(([modelId, rows]) => [modelId, inferenceUsage(rows)]));

function inferenceUsage(rows: readonly ModelUsage[]): JsonObject {
  const sum = (read: (usage: ModelUsage) => number): number => rows.reduce((total, usage) => total + read(usage), 0);
  const cents = (count: keyof TokenCounts): number => sum((usage) => centsOf(usage, count));
  return {
    token_count: { input: sum((u) => u.input), input_cache_read: sum((u) => u.cacheRead), input_cache_write: sum((u) => u.cacheWrite), output: sum((u) => u.output) },
    cost_in_cents: {
      input_cost_in_cents: cents("input"),
      input_cache_read_cost_in_cents: cents("cacheRead"),
      input_cache_write_cost_in_cents: cents("cacheWrite"),
      output_cost_in_cents: cents("output"),
    },
    web_search_count: 0,
    web_search_cost_in_cents: 0,
  };
}

/** The share of one kind of token, priced by itself. */
const centsOf = (usage: ModelUsage, count: keyof TokenCounts): number =>
  usage.price ? toCents(priceUsage({ input: 0, output: 0, [count]: usage[count] }, usage.price)) : 0;
