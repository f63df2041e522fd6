import type { worker } from "@millwright/contracts";
import { inSpan } from "@millwright/telemetry";
import type { ModelMessage } from "ai";
import { retryDelayMs } from "../../protocol/retrying.ts";
import { pause, type Timers } from "../../time/timers.ts";
import type { CallUsage, PlatformClient } from "../../context/platform-client.ts";
import type {
  ConversationEvent,
  ModelContext,
  ModelProvider,
  ModelStep,
  RunFailure,
  Summary,
} from "../model-provider.ts";
import { callFailure, type CallFailure } from "./call-failure.ts";
import type { Answer, CallEnded, ModelCall } from "./call-model.ts";
import { withDefaultModel } from "./default-model.ts";
import type { Wire } from "./language-model.ts";
import { askedAttributes, answeredAttributes, usageAttributes } from "./call-attributes.ts";
import { before, isTooLong, retainedFrom, sinceSummary, SUMMARIZER, transcriptOf } from "./compaction.ts";
import { LIMITED_OUTPUT_TOKENS, reserve } from "./cost-reservation.ts";
import { messagesOf, type Reply } from "./messages.ts";
import { systemPrompt } from "./system-prompt.ts";
import type { Fields } from "../event-fields.ts";

/** Timeouts and retries of model calls. */
export type WireLimits = {
  /** A reasoning model sends nothing for a while. After this time without data, the call counts as failed. */
  readonly silenceMs: number;
  readonly triesMax: number;
  readonly retryFirstMs: number;
  readonly retryMaxMs: number;
  /** The model's context window in tokens; absent: the default of its protocol. */
  readonly contextTokens?: number;
};

export const WIRE_LIMITS: WireLimits = { silenceMs: 5 * 60_000, triesMax: 8, retryFirstMs: 1_000, retryMaxMs: 30_000 };

export type WireDeps = {
  readonly wire: Wire;
  readonly assignment: worker.Assignment;
  /** Used for a provider address that a team has configured; it blocks internal addresses. */
  readonly fetch: typeof fetch;
  readonly timers: Timers;
  readonly limits: WireLimits;
  /** Replaces the run's secrets, including the provider's key. */
  readonly mask: (text: string) => string;
  /** Resolves when the outbound gate is open. */
  readonly whenOpen: () => Promise<void>;
  /** Adds an event to the run: a retry or a warning. */
  readonly emit: (kind: "model_retry" | "warning", payload: Fields) => void;
  /** Reports the usage of a call that the provider counted although it returned no response. */
  readonly reportUsage: (usage: CallUsage) => Promise<void>;
  /** Read before each call. Set while a cost limit applies. */
  readonly reserveCost?: PlatformClient["reserveCost"] | undefined;
  /** Publishes the model's text while it is generated, with the id of its step. */
  readonly publishTextDelta?: (stepId: string, delta: string) => void;
  /** Receives the outcome of each call. */
  readonly called: (outcome: string) => void;
};

/**
 * Returns a model of an AI provider, for one execution. Each step is one streamed call, retried while a retry may
 * succeed. The ids of steps and tool calls contain the execution, the attempt and the number of the call, so they are
 * unique across attempts.
 */
export function wireProvider(deps: WireDeps): ModelProvider {
  const { assignment, wire, mask } = deps;
  const { executionId, attempt, provider, modelId } = assignment;
  const { apiKey = "", baseUrl = "", operatorSet = false } = assignment.providerCredentials ?? {};
  const direct = operatorSet ? undefined : deps.fetch;
  const reach = provider === "openai-compatible" ? withDefaultModel(direct ?? fetch, baseUrl) : direct;
  const replies = new Map<string, Reply>();
  const window = deps.limits.contextTokens ?? wire.contextTokens;
  let calls = 0;

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
    const answered = await ask(request, signal, deps.publishTextDelta);
    if ("answer" in answered) return stepOf(answered.stepId, answered.answer);
    const summary = answered.failure.isTooLong ? await summarize(request, allEvents, signal) : undefined;
    return (
      summary ??
      failedStep(answered.stepId, { ...answered.failure.failure, message: mask(answered.failure.failure.message) })
    );
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
    const answered = await ask(request, signal);
    if ("answer" in answered)
      return {
        kind: "summary",
        callId: answered.stepId,
        text: answered.answer.text,
        retainedFrom: from,
        usage: answered.answer.usage,
      };
    return failedStep(answered.stepId, {
      ...answered.failure.failure,
      message: mask(answered.failure.failure.message),
    });
  }

  /** Returns one response; retries while a retry may succeed. */
  async function ask(
    request: ModelCall,
    signal: AbortSignal,
    publishTextDelta?: WireDeps["publishTextDelta"],
  ): Promise<{ stepId: string; answer: Answer } | { stepId: string; failure: CallFailure }> {
    for (let tried = 1; ; tried += 1) {
      const stepId = `e${executionId}-a${attempt}-c${(calls += 1)}`;
      const answer = await attemptCall(
        { ...request, onText: publishTextDelta && ((delta) => publishTextDelta(stepId, delta)) },
        stepId,
        signal,
      );
      if ("toolCalls" in answer) return { stepId, answer };
      if (!answer.isTransient || tried >= deps.limits.triesMax) return { stepId, failure: answer };
      const delayMs = Math.max(retryDelayMs(deps.limits, tried - 1), answer.retryAfterMs ?? 0);
      const text = `The model did not respond (${mask(answer.summary)}); the call is retried in ${Math.ceil(delayMs / 1_000)} s (try ${tried + 1} of ${deps.limits.triesMax}).`;
      deps.emit("model_retry", {
        text,
        call_id: stepId,
        try: tried + 1,
        tries_max: deps.limits.triesMax,
        delay_ms: Math.round(delayMs),
        status: answer.status,
      });
      await pause(deps.timers, delayMs, signal);
    }
  }

  async function attemptCall(request: ModelCall, callId: string, signal: AbortSignal): Promise<Answer | CallFailure> {
    const { callModel } = await import("./call-model.ts");
    await deps.whenOpen();
    signal.throwIfAborted();
    const { reserveCost, timers } = deps;
    const passed = reserveCost && (await reserve({ modelId, reserveCost, timers }, request, signal));
    if (passed) return { isTransient: false, summary: passed.message, failure: passed };
    return inSpan(
      `chat ${modelId}`.slice(0, 128),
      { kind: "client", attributes: askedAttributes(assignment) },
      async (span) => {
        try {
          const answer = await callModel(
            { ...request, outputTokensMax: reserveCost && LIMITED_OUTPUT_TOKENS },
            { timers: deps.timers, silenceMs: deps.limits.silenceMs },
            signal,
          );
          span.set(answeredAttributes(answer));
          deps.called(answer.isRefused ? "refused" : answer.isCutShort ? "cut_short" : "ok");
          return answer;
        } catch (error) {
          const { cause, used } = error as CallEnded;
          span.set(usageAttributes(used?.usage ?? {}));
          // Usage that the provider counted is charged, whatever ended the call, so it is reported. The platform
          // rejects usage of an execution that has ended; that error is ignored.
          if (used)
            await deps
              .reportUsage({ callId, modelId, ...used })
              .catch((refusal: unknown) => throwUnless(signal.aborted, refusal));
          if (signal.aborted) deps.called("interrupted");
          signal.throwIfAborted();
          const failure = callFailure(provider, cause ?? error);
          span.fail(failure.failure.reason);
          deps.called(failure.failure.reason);
          return failure;
        }
      },
    );
  }

  function stepOf(stepId: string, answer: Answer): ModelStep {
    replies.set(stepId, { message: answer.message, ids: answer.toolCalls.map(({ id }) => id) });
    const toolCalls = answer.toolCalls.map(({ id: _providerId, ...call }, index) => ({
      callId: `${stepId}-${index}`,
      ...call,
    }));
    if (answer.isCutShort)
      deps.emit("warning", { text: "The model's response reached its maximum length and ends early." });
    const base = { stepId, text: answer.text, toolCalls, usage: answer.usage };
    if (answer.isRefused) return { ...base, toolCalls: [], next: { kind: "failed", failure: REFUSED } };
    return { ...base, next: { kind: toolCalls.length > 0 ? "continue" : "done" } };
  }

  return { name: provider, isSlow: true, step };
}

function throwUnless(isFine: boolean, error: unknown): void {
  if (!isFine) throw error as Error;
}

const REFUSED: RunFailure = {
  code: "content_policy_violation",
  message: "The model provider's content policy blocked the response.",
  retryable: false,
  reason: "model_content_filter",
};

const failedStep = (stepId: string, failure: RunFailure): ModelStep => ({
  stepId,
  text: "",
  toolCalls: [],
  next: { kind: "failed", failure },
});

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
