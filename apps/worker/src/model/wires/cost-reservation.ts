import type { PlannedCall, PlatformClient } from "../../executions/execution-context.ts";
import { isDomainError } from "@millwright/errors";
import { pause, type Timers } from "../../time.ts";
import type { RunFailure } from "../model-provider.ts";
import type { ModelCall } from "./call-model.ts";
import { tokensIn } from "./compaction.ts";

/** What an answer may be long under a cost limit: what is set aside for it. */
export const LIMITED_OUTPUT_TOKENS = 32_000;
const ASK_AGAIN_MS = 2_000;

export type ReservationDeps = { readonly reserveCost: PlatformClient["reserveCost"]; readonly timers: Timers };

/**
 * Sets the greatest cost of a call aside before it is made; waits while calls of other runs under the same limit may use up what is left. Answers why
 * the run must end instead, if it must. Errors: the abort reason of `signal`, those of the platform.
 */
export function reserve(
  { modelId, ...deps }: ReservationDeps & { readonly modelId: string },
  { system, messages, tools }: ModelCall,
  signal: AbortSignal,
): Promise<RunFailure | undefined> {
  return reservePlanned(
    { modelId, inputTokens: tokensIn([system.content, messages, tools]), outputTokens: LIMITED_OUTPUT_TOKENS },
    deps,
    signal,
  );
}

/** The same for a call of known size. */
export async function reservePlanned(
  call: PlannedCall,
  { reserveCost, timers }: ReservationDeps,
  signal: AbortSignal,
): Promise<RunFailure | undefined> {
  for (;;) {
    const { outcome, message } = await reserveCost(call).catch(unpriced);
    if (outcome === "unpriced") return { code: "invalid_request", message, retryable: false, reason: UNPRICED };
    if (outcome === "exceeded") return { code: "budget_exceeded", message, retryable: false, reason: "cost_limit" };
    if (outcome !== "wait") return undefined;
    await pause(timers, ASK_AGAIN_MS, signal);
  }
}

/** As the platform refuses a reservation whose cost nobody can know. */
const UNPRICED = "cost_limit_unpriced";

function unpriced(error: unknown): { readonly outcome: string; readonly message: string } {
  if (isDomainError(error) && error.reason === UNPRICED) return { outcome: "unpriced", message: error.message };
  throw error;
}
