import { priceUsage, toCents, toDollars, type Price } from "@millwright/money";
import { SCRIPTED } from "./models.ts";
import type { JsonObject } from "@millwright/json";

/**
 * Tokens of one or more model calls. An absent count was not measured; it is never stored as 0. Cached tokens are not
 * included in `input`.
 */
export type TokenCounts = {
  readonly input?: number;
  readonly output?: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
};

/** A price that applies from some time on. Usage stores the version by which it was priced. */
export type PriceVersion = Price & { readonly version: number };

/** The credentials that a call used: the operator's, the team's, or the team's at a base URL that the team has set. */
export const MODEL_ACCESS = ["operator", "team", "team_endpoint"] as const;
export type ModelAccess = (typeof MODEL_ACCESS)[number];

/**
 * All usage of one run with one model, one kind of credentials and one price. Sums leave out values that were not
 * measured; `unpriced` and `unmeasured` count the affected calls.
 */
export type ModelUsage = {
  readonly modelId: string;
  /** Absent: unknown, or the model needs no credentials. */
  readonly access?: ModelAccess;
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly costMicros: bigint;
  /** Number of calls whose input or output was not measured. */
  readonly unmeasured: number;
  /** Number of calls without a cost. */
  readonly unpriced: number;
  readonly price?: PriceVersion;
};

/**
 * Returns RequestUsage of a run. Unknown values are left out, never 0. Returns undefined if nothing was metered.
 * Credits are always left out, because the platform has no such unit. So are the costs of compute and of the platform,
 * which the metrics service charges to factories.
 */
export function requestUsage(usages: readonly ModelUsage[]): JsonObject | undefined {
  if (usages.length === 0) return undefined;
  const isMeasured = usages.every(({ unmeasured }) => unmeasured === 0);
  const isPriced = usages.every(({ unpriced }) => unpriced === 0);
  // A cost reported by the provider is not split by kind of token.
  const isDivisible = isPriced && usages.every(({ price }) => price !== undefined);
  const groups = groupsOf(usages);
  return {
    ...(isPriced
      ? { inference_cost_usd: toDollars(usages.reduce((sum, { costMicros }) => sum + costMicros, 0n)) }
      : {}),
    ...(isMeasured ? { total_tokens: usages.reduce((sum, usage) => sum + totalOf(usage), 0) } : {}),
    ...(isMeasured ? { model_token_usage: groups.map(modelTokenUsage) } : {}),
    ...(isMeasured && isDivisible ? { usage_by_category: { primary_agent: categoryUsage(groups) } } : {}),
  };
}

/**
 * The tokens of a run that the model gateway has metered. `meteredTokens`: tokens of all kinds; absent: nothing was
 * metered.
 */
export type MeteredTokens = { readonly meteredTokens?: number; readonly unmeasuredCalls: number };

/** Returns the sum of the metered tokens. */
export const meteredTokens = (usages: readonly ModelUsage[]): MeteredTokens => ({
  ...(usages.length === 0 ? {} : { meteredTokens: usages.reduce((sum, usage) => sum + totalOf(usage), 0) }),
  unmeasuredCalls: usages.reduce((sum, { unmeasured }) => sum + unmeasured, 0),
});

const totalOf = ({ input, output, cacheRead, cacheWrite }: ModelUsage): number =>
  input + output + cacheRead + cacheWrite;

type UsageType = "warp" | "byok" | "custom_endpoint";
/** The calls of one model with one usage type. */
type Group = { readonly modelId: string; readonly type: UsageType; readonly rows: readonly ModelUsage[] };

function groupsOf(usages: readonly ModelUsage[]): readonly Group[] {
  const groups = new Map<string, Group>();
  for (const usage of usages) {
    const { modelId } = usage;
    const type = usageType(usage);
    const key = `${type} ${modelId}`;
    groups.set(key, { modelId, type, rows: [...(groups.get(key)?.rows ?? []), usage] });
  }
  return [...groups.values()];
}

/**
 * Returns the published usage type. warp: the operator's credentials or the built-in model, which the service provides;
 * custom_endpoint: a team's own server; byok: any other key of a team.
 */
function usageType({ modelId, access }: ModelUsage): UsageType {
  if (modelId === SCRIPTED || access === "operator") return "warp";
  return access === "team_endpoint" ? "custom_endpoint" : "byok";
}

function modelTokenUsage({ modelId, type, rows }: Group): JsonObject {
  const total = rows.reduce((sum, usage) => sum + totalOf(usage), 0);
  return { model_id: modelId, total_tokens: total, usage_type: type, tokens_by_category: { primary_agent: total } };
}

const CATEGORY_MEMBERS: Readonly<Record<UsageType, string>> = {
  warp: "direct_api_inference_usage",
  byok: "byok_inference_usage",
  custom_endpoint: "custom_endpoint_inference_usage",
};

function categoryUsage(groups: readonly Group[]): JsonObject {
  const members = Object.entries(CATEGORY_MEMBERS).flatMap(([type, member]) => {
    const ofType = groups.filter((group) => group.type === type);
    return ofType.length === 0
      ? []
      : [[member, Object.fromEntries(ofType.map(({ modelId, rows }) => [modelId, inferenceUsage(rows)]))] as const];
  });
  return { platform_usage_in_cents: 0, ...Object.fromEntries(members) };
}

function inferenceUsage(rows: readonly ModelUsage[]): JsonObject {
  const sum = (read: (usage: ModelUsage) => number): number => rows.reduce((total, usage) => total + read(usage), 0);
  const cents = (count: keyof TokenCounts): number => sum((usage) => centsOf(usage, count));
  return {
    token_count: {
      input: sum((u) => u.input),
      input_cache_read: sum((u) => u.cacheRead),
      input_cache_write: sum((u) => u.cacheWrite),
      output: sum((u) => u.output),
    },
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

/** Returns the cost of one kind of token, in cents. */
const centsOf = (usage: ModelUsage, count: keyof TokenCounts): number =>
  usage.price ? toCents(priceUsage({ input: 0, output: 0, [count]: usage[count] }, usage.price)) : 0;
