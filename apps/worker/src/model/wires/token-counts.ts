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

type Counter = Readonly<Record<string, unknown>>;

/**
 * What one event of a stream says of the tokens so far, in any of the wires' ways: all that is known of an answer which is cut off. A number that a wire only
 * begins with (the one token that Anthropic counts before anything is said) is not one that was measured.
 */
export function countsIn(event: unknown): TokenCounts {
  const { type, message, response, usage, usageMetadata } = asCounter(event);
  if (usageMetadata !== undefined) {
    const { promptTokenCount, cachedContentTokenCount, candidatesTokenCount, thoughtsTokenCount } = asCounter(usageMetadata);
    return counts(promptTokenCount, cachedContentTokenCount, undefined, sum(candidatesTokenCount, thoughtsTokenCount));
  }
  const own = asCounter(asCounter(message)["usage"] ?? asCounter(response)["usage"] ?? usage);
  const output = type === "message_start" ? undefined : (own["output_tokens"] ?? own["completion_tokens"]);
  if ("cache_read_input_tokens" in own || type === "message_start" || type === "message_delta") {
    return counts(own["input_tokens"], own["cache_read_input_tokens"], own["cache_creation_input_tokens"], output, false);
  }
  const cached = asCounter(own["input_tokens_details"] ?? own["prompt_tokens_details"])["cached_tokens"];
  return counts(own["input_tokens"] ?? own["prompt_tokens"], cached, undefined, output);
}

/** @param isWithCache whether the input holds what came from the cache */
function counts(input: unknown, cacheRead: unknown, cacheWrite: unknown, output: unknown, isWithCache = true): TokenCounts {
  const fresh = typeof input === "number" && isWithCache && typeof cacheRead === "number" ? input - cacheRead : input;
  const found = { inputTokens: fresh, outputTokens: output, inputCacheReadTokens: cacheRead, inputCacheWriteTokens: cacheWrite };
  return Object.fromEntries(Object.entries(found).filter(([, count]) => typeof count === "number" && count >= 0));
}

const asCounter = (value: unknown): Counter => (typeof value === "object" && value !== null ? (value as Counter) : {});
const sum = (a: unknown, b: unknown): unknown => (typeof a === "number" && typeof b === "number" ? a + b : a);
