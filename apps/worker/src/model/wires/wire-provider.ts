import type { ModelMessage } from "ai";
import type {
  ConversationEvent,
  ModelContext,
  ModelProvider,
  ModelStep,
  RunFailure,
  Summary,
} from "../model-provider.ts";
import type { CallFailure } from "./call-failure.ts";
import type { ModelCall, ModelResponse } from "./call-model.ts";
import { withDefaultModel } from "./default-model.ts";
import type { Wire } from "./language-model.ts";
import { before, isTooLong, retainedFrom, sinceSummary, SUMMARIZER, transcriptOf } from "./compaction.ts";
import { messagesOf, type Reply } from "./messages.ts";
import { retriedCalls, type CallDeps } from "./retried-calls.ts";
import { systemPrompt } from "./system-prompt.ts";

export type WireDeps = CallDeps & {
  readonly wire: Wire;
  /** Used for a provider address that a team has configured; it blocks internal addresses. */
  readonly fetch: typeof fetch;
  /** Publishes the model's text while it is generated, with the id of its step. */
  readonly publishTextDelta?: (stepId: string, delta: string) => void;
};

/**
 * Returns a model of an AI provider, for one execution. Each step is one streamed call, retried while a retry may
 * succeed. The ids of steps and tool calls contain the execution, the attempt and the number of the call, so they are
 * unique across attempts.
 */
export function wireProvider(deps: WireDeps): ModelProvider {
  const { assignment, wire, mask } = deps;
  const { provider, modelId } = assignment;
  const { apiKey = "", baseUrl = "", operatorSet = false } = assignment.providerCredentials ?? {};
  const direct = operatorSet ? undefined : deps.fetch;
  const reach = provider === "openai-compatible" ? withDefaultModel(direct ?? fetch, baseUrl) : direct;
  const replies = new Map<string, Reply>();
  const window = deps.limits.contextTokens ?? wire.contextTokens;
  const call = retriedCalls(deps);

  async function step(context: ModelContext, signal: AbortSignal): Promise<ModelStep | Summary | undefined> {
    if (isAnswered(context.events)) return undefined;
    const model = await wire.open(
      { apiKey, baseUrl, fetch: reach },
      modelId.startsWith(`${provider}/`) ? modelId.slice(provider.length + 1) : modelId,
    );
    const allEvents = [...context.earlier, ...context.events];
    const request: ModelCall = {
      ...{
        model,
        tools: context.tools,
        messages: marked(messagesOf(sinceSummary(allEvents), { replies, mask }), wire),
      },
      system: {
        role: "system",
        content: mask(systemPrompt(context, assignment)),
        providerOptions: wire.cacheMark,
      },
      options: wire.options,
      toolChoice: context.mustCallTool && wire.canRequireTools ? "required" : undefined,
    };
    if (isTooLong([request.system.content, request.tools, request.messages], window)) {
      const summary = await summarize(request, allEvents, signal);
      if (summary) return summary;
    }
    const called = await call(request, signal, deps.publishTextDelta);
    if ("response" in called) return stepOf(called.stepId, called.response);
    const summary = called.failure.isTooLong ? await summarize(request, allEvents, signal) : undefined;
    return summary ?? failedStep(called.stepId, called.failure);
  }

  /**
   * Has the model summarize the beginning of the conversation. Returns a failed step if the model cannot, and undefined
   * if there is nothing to summarize.
   */
  async function summarize(
    { model, options }: ModelCall,
    events: readonly ConversationEvent[],
    signal: AbortSignal,
  ): Promise<Summary | ModelStep | undefined> {
    const from = retainedFrom(events, window);
    if (from === undefined) return undefined;
    const prompt = `The conversation so far:\n\n${transcriptOf(messagesOf(before(events, from), { replies: new Map(), mask }), window)}`;
    const request: ModelCall = {
      model,
      tools: [],
      messages: [{ role: "user", content: prompt }],
      system: { role: "system", content: SUMMARIZER },
      options,
    };
    const called = await call(request, signal);
    if ("response" in called)
      return {
        kind: "summary",
        callId: called.stepId,
        text: called.response.text,
        retainedFrom: from,
        usage: called.response.usage,
      };
    return failedStep(called.stepId, called.failure);
  }

  const failedStep = (stepId: string, { failure }: CallFailure): ModelStep => ({
    stepId,
    text: "",
    toolCalls: [],
    next: { kind: "failed", failure: { ...failure, message: mask(failure.message) } },
  });

  function stepOf(stepId: string, response: ModelResponse): ModelStep {
    replies.set(stepId, { message: response.message, ids: response.toolCalls.map(({ id }) => id) });
    const toolCalls = response.toolCalls.map(({ id: _providerId, ...toolCall }, index) => ({
      callId: `${stepId}-${index}`,
      ...toolCall,
    }));
    if (response.isCutShort)
      deps.emit("warning", { text: "The model's response reached its maximum length and ends early." });
    const base = { stepId, text: response.text, toolCalls, usage: response.usage };
    if (response.isRefused) return { ...base, toolCalls: [], next: { kind: "failed", failure: REFUSED } };
    return { ...base, next: { kind: toolCalls.length > 0 ? "continue" : "done" } };
  }

  return { name: provider, isSlow: true, step };
}

const REFUSED: RunFailure = {
  code: "content_policy_violation",
  message: "The model provider's content policy blocked the response.",
  retryable: false,
  reason: "model_content_filter",
};

/** Returns whether the last event is a model step without tool calls, so that there is nothing to respond to. */
function isAnswered(events: ModelContext["events"]): boolean {
  const last = events.findLast(
    ({ kind, payload }) =>
      kind === "model_step" || kind === "tool_end" || (kind === "message" && payload["role"] === "user"),
  );
  return (
    last?.kind === "model_step" &&
    (!Array.isArray(last.payload["tool_calls"]) || last.payload["tool_calls"].length === 0)
  );
}

/** Marks the newest message, so that the prompt is cached up to it. */
function marked(messages: ModelMessage[], { cacheMark }: Wire): ModelMessage[] {
  const last = messages.at(-1);
  return last && cacheMark ? [...messages.slice(0, -1), { ...last, providerOptions: cacheMark }] : messages;
}
