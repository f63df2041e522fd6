import { isDomainError } from "@millwright/errors";
import type { ExecutionResult } from "./execution-context.ts";
import { ExecutionCancelled, LeaseLost } from "./execution-errors.ts";

/** How the harness came to its end: its word, its error, or that it did not end in time after it was told to. */
export type Settled = { readonly result: ExecutionResult } | { readonly error: unknown } | "abandoned";

/** Ends of its own; FAILED or ERROR during a stop may only be the echo of the stop. */
const REACHED = new Set<ExecutionResult["outcome"]>(["DONE", "BLOCKED", "WAITING"]);

/**
 * What the platform is told; undefined when it is told nothing: a lost attempt, or a worker that stops (the lease ends by itself, and the next
 * attempt goes on). Our own recorded intent to stop counts more than how the harness reacted to it.
 */
export function outcomeOf(settled: Settled, stopReason: Error | undefined): ExecutionResult | undefined {
  const result = settled !== "abandoned" && "result" in settled ? settled.result : undefined;
  if (stopReason instanceof LeaseLost) return undefined;
  if (stopReason instanceof ExecutionCancelled) return stopped(stopReason, result);
  if (stopReason) return failed(stopReason);
  if (result) return result;
  return settled === "abandoned" || !("error" in settled) ? undefined : failed(settled.error);
}

/** An execution that was told to end; one that reached its own end in that moment keeps it, unless it was cancelled. */
function stopped(reason: ExecutionCancelled, result: ExecutionResult | undefined): ExecutionResult | undefined {
  const snapshot = result?.snapshotKey === undefined ? {} : { snapshotKey: result.snapshotKey };
  if (reason.stopCause === "cancelled") return { outcome: "CANCELLED", ...snapshot };
  if (reason.stopCause === "worker_stopping") return result && REACHED.has(result.outcome) ? result : undefined;
  return { outcome: "ERROR", error: { code: "infrastructure_timeout", message: reason.message, retryable: false, reason: reason.reason }, ...snapshot };
}

/** An execution that broke: a public catalog code, and only such text as is meant to be public. */
function failed(error: unknown): ExecutionResult {
  const known = isDomainError(error) ? error : undefined;
  return {
    outcome: "ERROR",
    error: {
      code: known?.reason === "spool_failed" ? "resource_unavailable" : "internal_error",
      message: known?.message ?? "The worker failed while it ran this execution.",
      retryable: known?.retryable ?? true,
      reason: known?.reason ?? "worker_failed",
    },
  };
}
