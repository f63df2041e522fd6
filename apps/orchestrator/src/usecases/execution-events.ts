import type { NewRunEvent } from "../domain/run-events.ts";
import type { Next } from "../domain/run-state.ts";

/** Why a run stands in the queue again. */
export type QueueReason = "offer_expired" | "declined" | "followup" | "children" | "restarted" | "resumed";

export const queuedAgain = (reason: QueueReason, executionId?: number): NewRunEvent => ({
  kind: "run_queued",
  payload: { reason },
  ...(executionId === undefined ? {} : { executionId }),
});

/** A run has ended. `reason` is a finer cause than the public error code, such as container_oom. */
export const finished = (next: Next, executionId: number | undefined, more: { reason?: string; cancelled_by?: string } = {}): NewRunEvent => ({
  kind: "run_finished",
  payload: {
    state: next.run,
    ...(next.status ? { message: next.status.message } : {}),
    ...(next.status?.errorCode ? { error_code: next.status.errorCode } : {}),
    ...(next.status?.retryable === undefined ? {} : { retryable: next.status.retryable }),
    ...more,
  },
  ...(executionId === undefined ? {} : { executionId }),
});
