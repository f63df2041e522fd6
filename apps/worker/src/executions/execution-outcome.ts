import { isDomainError } from "@millwright/errors";
import type { ExecutionResult } from "../context/execution-context.ts";
import { ExecutionCancelled, LeaseLost } from "../context/execution-errors.ts";
import { SandboxStartFailed } from "../sandbox/sandbox-errors.ts";

/** How the execution's code ended: its result, its error, or a timeout after it was stopped. */
export type Settled = { readonly result: ExecutionResult } | { readonly error: unknown } | "abandoned";

/** Outcomes that the execution itself reached. FAILED or ERROR during a stop may be a consequence of the stop. */
const REACHED = new Set<ExecutionResult["outcome"]>(["DONE", "BLOCKED", "WAITING"]);

/**
 * Returns the outcome to report; undefined for a lost attempt and for one that is returned (`returnOf`). The worker's
 * recorded intent to stop takes precedence over the reaction of the execution's code.
 */
export function outcomeOf(settled: Settled, stopReason: Error | undefined): ExecutionResult | undefined {
  const result = settled !== "abandoned" && "result" in settled ? settled.result : undefined;
  if (stopReason instanceof LeaseLost) return undefined;
  if (stopReason instanceof ExecutionCancelled) return stopped(stopReason, result);
  if (stopReason) return { ...failed(stopReason), ...savedBy(result) };
  if (result) return result;
  if (isNotStarted(settled)) return undefined;
  return settled === "abandoned" || !("error" in settled) ? undefined : failed(settled.error);
}

/**
 * Returns whether a stopped execution saves its workspace. It does if its run ends, because a follow-up continues in
 * that workspace. It does not if another attempt follows, because that attempt repeats the interrupted step.
 */
export const savesWorkspace = (stopReason: Error): boolean =>
  !(stopReason instanceof LeaseLost) &&
  !(stopReason instanceof ExecutionCancelled && stopReason.stopCause === "worker_stopping");

/**
 * Why an attempt without an outcome is returned to the platform, which queues its run again. `isFailure`: counts as a
 * lost worker.
 */
export type LeaseReturn = { readonly reason: string; readonly message: string; readonly isFailure: boolean };

/**
 * Returns the reason for an attempt whose worker stops or whose sandbox did not start. Undefined: the lease must not be
 * returned.
 */
export function returnOf(settled: Settled, stopReason: Error | undefined): LeaseReturn | undefined {
  if (stopReason instanceof ExecutionCancelled && stopReason.stopCause === "worker_stopping") return WORKER_STOPPING;
  if (stopReason || !isNotStarted(settled)) return undefined;
  return { reason: "sandbox_start_failed", message: settled.error.message, isFailure: true };
}

export const WORKER_STOPPING: LeaseReturn = {
  reason: "worker_stopping",
  message: "The worker is stopping.",
  isFailure: false,
};

const isNotStarted = (settled: Settled): settled is { readonly error: SandboxStartFailed } =>
  settled !== "abandoned" && "error" in settled && settled.error instanceof SandboxStartFailed;

/**
 * Returns the outcome of an execution that was stopped. Its own result is used if it finished concurrently, unless it
 * was cancelled.
 */
function stopped(reason: ExecutionCancelled, result: ExecutionResult | undefined): ExecutionResult | undefined {
  if (reason.stopCause === "cancelled") return { outcome: "CANCELLED", ...savedBy(result) };
  if (reason.stopCause === "worker_stopping") return result && REACHED.has(result.outcome) ? result : undefined;
  return {
    outcome: "ERROR",
    error: { code: "infrastructure_timeout", message: reason.message, retryable: false, reason: reason.reason },
    ...savedBy(result),
  };
}

/** Returns where the workspace is stored. */
const savedBy = (
  result: ExecutionResult | undefined,
): Pick<ExecutionResult, "snapshotKey" | "isWorkspaceUnchanged"> => ({
  snapshotKey: result?.snapshotKey,
  isWorkspaceUnchanged: result?.isWorkspaceUnchanged,
});

/** Returns the outcome of a failed execution: a public catalog code, and only text that is intended to be public. */
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
