import type { worker } from "@millwright/contracts";
import type { SpanAttributes } from "@millwright/telemetry";
import type { TokenCounts } from "../../context/platform-client.ts";
import type { ModelResponse } from "./call-model.ts";

/**
 * The provider names of OpenTelemetry's semantic conventions for generative AI. Other providers keep their own name.
 */
const PROVIDERS: Readonly<Record<string, string>> = { google: "gcp.gemini" };

/**
 * Returns the span attributes of a model call. The content of messages, which the conventions make optional, is never
 * included.
 */
export const requestAttributes = ({
  provider,
  modelId,
  conversationUid,
}: Pick<worker.Assignment, "provider" | "modelId" | "conversationUid">): SpanAttributes => ({
  "gen_ai.operation.name": "chat",
  "gen_ai.provider.name": PROVIDERS[provider] ?? provider,
  "gen_ai.request.model": modelId,
  "gen_ai.request.stream": true,
  "gen_ai.conversation.id": conversationUid,
});

export const responseAttributes = ({ usage, toolCalls, isCutShort, isRefused }: ModelResponse): SpanAttributes => ({
  "gen_ai.response.finish_reasons": [
    isRefused ? "content_filter" : isCutShort ? "length" : toolCalls.length > 0 ? "tool_calls" : "stop",
  ],
  ...usageAttributes(usage),
});

/**
 * Returns the token counts as span attributes. The conventions include cached input in the input tokens. Unknown counts
 * are absent.
 */
export function usageAttributes({
  inputTokens,
  outputTokens,
  inputCacheReadTokens,
  inputCacheWriteTokens,
}: TokenCounts): SpanAttributes {
  const input =
    inputTokens === undefined ? undefined : inputTokens + (inputCacheReadTokens ?? 0) + (inputCacheWriteTokens ?? 0);
  return {
    "gen_ai.usage.input_tokens": input,
    "gen_ai.usage.output_tokens": outputTokens,
    "gen_ai.usage.cache_read.input_tokens": inputCacheReadTokens,
    "gen_ai.usage.cache_creation.input_tokens": inputCacheWriteTokens,
  };
}
