import type { worker } from "@millwright/contracts";
import { inSpan } from "@millwright/telemetry";
import type { CallUsage, PlatformClient } from "../../context/platform-client.ts";
import { retryDelayMs } from "../../protocol/retrying.ts";
import { pause, type Timers } from "../../time/timers.ts";
import type { Fields } from "../event-fields.ts";
import { requestAttributes, responseAttributes, usageAttributes } from "./call-attributes.ts";
import { callFailure, type CallFailure } from "./call-failure.ts";
import type { CallEnded, ModelCall, ModelResponse } from "./call-model.ts";
import { LIMITED_OUTPUT_TOKENS, reserve } from "./cost-reservation.ts";

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

export type CallDeps = {
  readonly assignment: worker.Assignment;
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
  /** Receives the outcome of each call. */
  readonly called: (outcome: string) => void;
};

/**
 * Returns a function that calls a model and retries while a retry may succeed. Each try has its own id, which contains
 * the execution, the attempt and the number of the call, so it is unique across attempts.
 */
export function retriedCalls(deps: CallDeps) {
  const { assignment, mask } = deps;
  const { executionId, attempt, provider, modelId } = assignment;
  let calls = 0;

  /** Returns one response; retries while a retry may succeed. */
  async function call(
    request: ModelCall,
    signal: AbortSignal,
    publishTextDelta?: (stepId: string, delta: string) => void,
  ): Promise<{ stepId: string; response: ModelResponse } | { stepId: string; failure: CallFailure }> {
    for (let tried = 1; ; tried += 1) {
      const stepId = `e${executionId}-a${attempt}-c${(calls += 1)}`;
      const result = await attemptCall(
        { ...request, onText: publishTextDelta && ((delta) => publishTextDelta(stepId, delta)) },
        stepId,
        signal,
      );
      if ("toolCalls" in result) return { stepId, response: result };
      if (!result.isTransient || tried >= deps.limits.triesMax) return { stepId, failure: result };
      const delayMs = Math.max(retryDelayMs(deps.limits, tried - 1), result.retryAfterMs ?? 0);
      const text = `The model did not respond (${mask(result.summary)}); the call is retried in ${Math.ceil(delayMs / 1_000)} s (try ${tried + 1} of ${deps.limits.triesMax}).`;
      deps.emit("model_retry", {
        text,
        call_id: stepId,
        try: tried + 1,
        tries_max: deps.limits.triesMax,
        delay_ms: Math.round(delayMs),
        status: result.status,
      });
      await pause(deps.timers, delayMs, signal);
    }
  }

  async function attemptCall(
    request: ModelCall,
    callId: string,
    signal: AbortSignal,
  ): Promise<ModelResponse | CallFailure> {
    const { callModel } = await import("./call-model.ts");
    await deps.whenOpen();
    signal.throwIfAborted();
    const { reserveCost, timers } = deps;
    const passed = reserveCost && (await reserve({ modelId, reserveCost, timers }, request, signal));
    if (passed) return { isTransient: false, summary: passed.message, failure: passed };
    return inSpan(
      `chat ${modelId}`.slice(0, 128),
      { kind: "client", attributes: requestAttributes(assignment) },
      async (span) => {
        try {
          const response = await callModel(
            { ...request, outputTokensMax: reserveCost && LIMITED_OUTPUT_TOKENS },
            { timers: deps.timers, silenceMs: deps.limits.silenceMs },
            signal,
          );
          span.set(responseAttributes(response));
          deps.called(response.isRefused ? "refused" : response.isCutShort ? "cut_short" : "ok");
          return response;
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

  return call;
}

function throwUnless(isFine: boolean, error: unknown): void {
  if (!isFine) throw error as Error;
}
