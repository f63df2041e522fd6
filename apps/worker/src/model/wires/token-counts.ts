import type { LanguageModelUsage } from "ai";
import type { TokenCounts } from "../../executions/execution-context.ts";

/** Names under which the wires count tokens read from and written to a prompt cache. */
const CACHE_READS = ["cache_read_input_tokens", "cached_tokens", "cachedContentTokenCount"];
const CACHE_WRITES = ["cache_creation_input_tokens", "cache_write_tokens"];

/**
 * What the provider counted, in disjoint kinds: input without what came from or went into a cache. What it did not count is absent,
 * where the library would say 0. Undefined when it counted nothing at all.
 */
export function tokenCounts({ inputTokenDetails: input, outputTokens, raw }: LanguageModelUsage): TokenCounts | undefined {
  if (raw === undefined || (input.noCacheTokens === undefined && outputTokens === undefined)) return undefined;
  return {
    ...(input.noCacheTokens === undefined ? {} : { inputTokens: input.noCacheTokens }),
    ...(outputTokens === undefined ? {} : { outputTokens }),
    ...(has(raw, CACHE_READS) && input.cacheReadTokens !== undefined ? { inputCacheReadTokens: input.cacheReadTokens } : {}),
    ...(has(raw, CACHE_WRITES) && input.cacheWriteTokens !== undefined ? { inputCacheWriteTokens: input.cacheWriteTokens } : {}),
  };
}

const has = (value: unknown, names: readonly string[]): boolean =>
  typeof value === "object" && value !== null && Object.entries(value).some(([name, member]) => (names.includes(name) && typeof member === "number") || has(member, names));
