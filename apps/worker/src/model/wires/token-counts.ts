import type { LanguageModelUsage } from "ai";
import type { TokenCounts } from "../../context/platform-client.ts";
import { tokensIn, tokensOf } from "./compaction.ts";

/** The names under which the protocols count tokens that are read from and written to a prompt cache. */
const CACHE_READS = ["cache_read_input_tokens", "cached_tokens", "cachedContentTokenCount"];
const CACHE_WRITES = ["cache_creation_input_tokens", "cache_write_tokens"];

/**
 * Returns the provider's counts in disjoint categories: input without tokens that were read from or written to a cache.
 * A value that the provider did not count is absent, where the library would report 0. Returns undefined if the
 * provider counted nothing.
 */
export function tokenCounts({
  inputTokenDetails: input,
  outputTokens,
  raw,
}: LanguageModelUsage): TokenCounts | undefined {
  if (raw === undefined || (input.noCacheTokens === undefined && outputTokens === undefined)) return undefined;
  return {
    ...onlyCounts({
      inputTokens: input.noCacheTokens,
      outputTokens,
      inputCacheReadTokens: has(raw, CACHE_READS) ? input.cacheReadTokens : undefined,
      inputCacheWriteTokens: has(raw, CACHE_WRITES) ? input.cacheWriteTokens : undefined,
    }),
    ...statedCost(asCounter(raw)),
  };
}

/** Dollars. The orchestrator refuses a report with a higher cost, which would lose the tokens as well. */
const STATED_COST_MAX = 1_000_000;

/**
 * Returns the cost of a call if the provider states it. Gateways for many models report it as `cost` in dollars next to
 * the tokens.
 */
function statedCost({ cost }: Counter): Pick<TokenCounts, "costMicros"> {
  const isStated = typeof cost === "number" && cost >= 0 && cost <= STATED_COST_MAX;
  return isStated ? { costMicros: Math.round(cost * 1_000_000) } : {};
}

const has = (value: unknown, names: readonly string[]): boolean =>
  typeof value === "object" &&
  value !== null &&
  Object.entries(value).some(
    ([name, member]) => (names.includes(name) && typeof member === "number") || has(member, names),
  );

type Counter = Readonly<Record<string, unknown>>;

/**
 * Returns the token counts that one event of a stream contains, in the form of any protocol. They are all that is known
 * about a response that is cut off. An initial placeholder (the one output token that Anthropic reports before any
 * text) is not a measured count and is ignored.
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

/** @param isWithCache whether the input includes the tokens read from the cache */
function counts(
  input: unknown,
  cacheRead: unknown,
  cacheWrite: unknown,
  output: unknown,
  isWithCache = true,
): TokenCounts {
  const fresh = typeof input === "number" && isWithCache && typeof cacheRead === "number" ? input - cacheRead : input;
  return onlyCounts({
    inputTokens: fresh,
    outputTokens: output,
    inputCacheReadTokens: cacheRead,
    inputCacheWriteTokens: cacheWrite,
  });
}

/** Leaves out what is no count: a provider may send fractions and negative numbers, which cannot be stored. */
const onlyCounts = (found: Readonly<Record<keyof Omit<TokenCounts, "costMicros">, unknown>>): TokenCounts =>
  Object.fromEntries(
    Object.entries(found).filter(([, count]) => Number.isSafeInteger(count) && (count as number) >= 0),
  );

const asCounter = (value: unknown): Counter => (typeof value === "object" && value !== null ? (value as Counter) : {});
const sum = (a: unknown, b: unknown): unknown => (typeof a === "number" && typeof b === "number" ? a + b : (a ?? b));

/** The members of a streamed chunk that contain its text, in any protocol. */
const TEXT_MEMBERS = new Set([
  "delta",
  "text",
  "content",
  "arguments",
  "partial_json",
  "thinking",
  "reasoning_content",
]);

/**
 * Returns the number of response characters in one event of a stream. Events that repeat earlier content count as 0.
 */
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

/** Returns whether an event is the last relevant one of a response. A response that ends without it is incomplete. */
export function isEnd(event: unknown): boolean {
  const { type, choices, candidates } = asCounter(event);
  const finished = (list: unknown, member: string): boolean =>
    Array.isArray(list) && list.some((item) => typeof asCounter(item)[member] === "string");
  return ENDS.has(String(type)) || finished(choices, "finish_reason") || finished(candidates, "finishReason");
}

/**
 * Returns the usage of a response that was cut off: the provider's counts so far, and estimates of the counts that it
 * sends only at the end. The provider charges for such a call, so limits and totals must include it.
 *
 * @param request the request as it was sent
 * @param characters the number of characters received
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
