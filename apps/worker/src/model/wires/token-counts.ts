import type { LanguageModelUsage } from "ai";
import type { TokenCounts } from "../../executions/execution-context.ts";
import { tokensIn, tokensOf } from "./compaction.ts";

/** Names under which the wires count tokens read from and written to a prompt cache. */
const CACHE_READS = ["cache_read_input_tokens", "cached_tokens", "cachedContentTokenCount"];
const CACHE_WRITES = ["cache_creation_input_tokens", "cache_write_tokens"];

/**
 * What the provider counted, in disjoint kinds: input without what came from or went into a cache. What it did not count is absent,
 * where the library would say 0. Undefined when it counted nothing at all.
 */
export function tokenCounts({
  inputTokenDetails: input,
  outputTokens,
  raw,
}: LanguageModelUsage): TokenCounts | undefined {
  if (raw === undefined || (input.noCacheTokens === undefined && outputTokens === undefined)) return undefined;
  return {
    ...(input.noCacheTokens === undefined ? {} : { inputTokens: input.noCacheTokens }),
    ...(outputTokens === undefined ? {} : { outputTokens }),
    ...(has(raw, CACHE_READS) && input.cacheReadTokens !== undefined
      ? { inputCacheReadTokens: input.cacheReadTokens }
      : {}),
    ...(has(raw, CACHE_WRITES) && input.cacheWriteTokens !== undefined
      ? { inputCacheWriteTokens: input.cacheWriteTokens }
      : {}),
    ...statedCost(asCounter(raw)),
  };
}

/** The cost of a call where the provider states it: gateways for many models do, as `cost` in dollars beside the tokens. */
function statedCost({ cost }: Counter): Pick<TokenCounts, "costMicros"> {
  return typeof cost === "number" && cost >= 0 ? { costMicros: Math.round(cost * 1_000_000) } : {};
}

const has = (value: unknown, names: readonly string[]): boolean =>
  typeof value === "object" &&
  value !== null &&
  Object.entries(value).some(
    ([name, member]) => (names.includes(name) && typeof member === "number") || has(member, names),
  );

type Counter = Readonly<Record<string, unknown>>;

/**
 * What one event of a stream says of the tokens so far, in any of the wires' ways: all that is known of an answer which is cut off. A number that a wire only
 * begins with (the one token that Anthropic counts before anything is said) is not one that was measured.
 */
export function countsIn(event: unknown): TokenCounts {
  const { type, message, response, usage, usageMetadata } = asCounter(event);
  if (usageMetadata !== undefined) {
    const { promptTokenCount, cachedContentTokenCount, candidatesTokenCount, thoughtsTokenCount } =
      asCounter(usageMetadata);
    return counts(promptTokenCount, cachedContentTokenCount, undefined, sum(candidatesTokenCount, thoughtsTokenCount));
  }
  const own = asCounter(asCounter(message)["usage"] ?? asCounter(response)["usage"] ?? usage);
  const output = type === "message_start" ? undefined : (own["output_tokens"] ?? own["completion_tokens"]);
  if ("cache_read_input_tokens" in own || type === "message_start" || type === "message_delta") {
    return counts(
      own["input_tokens"],
      own["cache_read_input_tokens"],
      own["cache_creation_input_tokens"],
      output,
      false,
    );
  }
  const cached = asCounter(own["input_tokens_details"] ?? own["prompt_tokens_details"])["cached_tokens"];
  return { ...counts(own["input_tokens"] ?? own["prompt_tokens"], cached, undefined, output), ...statedCost(own) };
}

/** @param isWithCache whether the input holds what came from the cache */
function counts(
  input: unknown,
  cacheRead: unknown,
  cacheWrite: unknown,
  output: unknown,
  isWithCache = true,
): TokenCounts {
  const fresh = typeof input === "number" && isWithCache && typeof cacheRead === "number" ? input - cacheRead : input;
  const found = {
    inputTokens: fresh,
    outputTokens: output,
    inputCacheReadTokens: cacheRead,
    inputCacheWriteTokens: cacheWrite,
  };
  return Object.fromEntries(Object.entries(found).filter(([, count]) => typeof count === "number" && count >= 0));
}

const asCounter = (value: unknown): Counter => (typeof value === "object" && value !== null ? (value as Counter) : {});
const sum = (a: unknown, b: unknown): unknown => (typeof a === "number" && typeof b === "number" ? a + b : (a ?? b));

/** Members of a streamed piece of an answer that hold its text, in any of the wires' ways. */
const TEXT_MEMBERS = new Set([
  "delta",
  "text",
  "content",
  "arguments",
  "partial_json",
  "thinking",
  "reasoning_content",
]);

/** Counts the characters of an answer that one event of its stream holds; events that repeat what was streamed before hold none. */
export function charactersIn(event: unknown): number {
  const { type } = asCounter(event);
  if (typeof type === "string" && !type.endsWith("delta")) return 0;
  const count = (value: unknown, member: string): number => {
    if (typeof value === "string") return TEXT_MEMBERS.has(member) ? value.length : 0;
    if (typeof value !== "object" || value === null) return 0;
    return Object.entries(value).reduce(
      (total, [name, inner]) => total + count(inner, Array.isArray(value) ? member : name),
      0,
    );
  };
  return count(event, "");
}

const ENDS = new Set(["message_stop", "response.completed", "response.incomplete", "response.failed"]);

/** Whether an event is the last one of an answer that matters: of an answer that ends without it the rest is missing. */
export function isEnd(event: unknown): boolean {
  const { type, choices, candidates } = asCounter(event);
  const finished = (list: unknown, member: string): boolean =>
    Array.isArray(list) && list.some((item) => typeof asCounter(item)[member] === "string");
  return ENDS.has(String(type)) || finished(choices, "finish_reason") || finished(candidates, "finishReason");
}

/**
 * Returns the usage of an answer that was cut off: what the provider had counted by then, and estimates for what it counts only at the end. The
 * provider charges for such a call, so limits and sums must include it.
 *
 * @param request as it was sent
 * @param characters of the answer that had come
 */
export function interruptedUsage(
  counted: TokenCounts,
  request: unknown,
  characters: number,
): { usage: TokenCounts; isEstimated?: true } {
  const { inputTokens, outputTokens } = counted;
  if (inputTokens !== undefined && outputTokens !== undefined) return { usage: counted };
  const usage = {
    ...counted,
    inputTokens: inputTokens ?? tokensIn(request),
    outputTokens: outputTokens ?? tokensOf(characters),
  };
  return { usage, isEstimated: true };
}
