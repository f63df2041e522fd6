import type { PlannedCall, PlatformClient } from "../../context/platform-client.ts";
import { isDomainError } from "@millwright/errors";
import { pause, type Timers } from "../../time/timers.ts";
import type { RunFailure } from "../model-provider.ts";
import type { ModelCall } from "./call-model.ts";
import { tokensIn } from "./compaction.ts";

/** The maximum length of a response under a cost limit; its cost is reserved before the call. */
export const LIMITED_OUTPUT_TOKENS = 32_000;
const RETRY_INTERVAL_MS = 2_000;

export type ReservationDeps = { readonly reserveCost: PlatformClient["reserveCost"]; readonly timers: Timers };

/**
 * Reserves the maximum cost of a call before it is made. Waits while calls of other runs under the same limit may use
 * up the remaining budget. Returns a failure if the run must end. Throws the abort reason of `signal` and errors of the
 * platform.
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

/** Reserves the cost of a call whose size is known. */
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
    await pause(timers, RETRY_INTERVAL_MS, signal);
  }
}

/** The reason code with which the platform refuses a reservation whose cost is unknown. */
const UNPRICED = "cost_limit_unpriced";

function unpriced(error: unknown): { readonly outcome: string; readonly message: string } {
  if (isDomainError(error) && error.reason === UNPRICED) return { outcome: "unpriced", message: error.message };
  throw error;
}
