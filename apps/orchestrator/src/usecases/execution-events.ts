import type { NewRunEvent } from "../domain/run-events.ts";
import { lifeOf, type LockedRun, type RunChange } from "../domain/run-change.ts";
import { transition, type Change, type Next } from "../domain/run-state.ts";
import type { TerminalState } from "../domain/run.ts";

/** Why a run stands in the queue again. */
export type QueueReason = "offer_expired" | "declined" | "followup" | "children" | "restarted" | "resumed";

export const queuedAgain = (reason: QueueReason, executionId?: number): NewRunEvent => ({
  kind: "run_queued",
  payload: { reason },
  ...(executionId === undefined ? {} : { executionId }),
});

/** The cause of an end that nobody has named more finely. */
const CAUSES: Readonly<Record<TerminalState, string>> = {
  SUCCEEDED: "completed",
  BLOCKED: "awaiting_input",
  CANCELLED: "cancelled",
  FAILED: "internal_error",
  ERROR: "internal_error",
};

/** A run has ended. `reason` is always there, for programs: a finer cause than the public error code, such as container_oom. */
export const finished = (
  next: Next,
  executionId: number | undefined,
  more: { reason?: string; cancelled_by?: string } = {},
): NewRunEvent => ({
  kind: "run_finished",
  payload: {
    state: next.run,
    ...(next.status ? { message: next.status.message } : {}),
    ...(next.status?.errorCode ? { error_code: next.status.errorCode } : {}),
    ...(next.status?.retryable === undefined ? {} : { retryable: next.status.retryable }),
    reason: next.status?.errorCode ?? CAUSES[next.run as TerminalState],
    ...more,
  },
  ...(executionId === undefined ? {} : { executionId }),
});

/** A debug window is over, in whatever way: what nobody has heard in it is given up, and the run stays as it is. */
export const windowEnded = (
  run: LockedRun,
  change: Extract<Change, { type: "complete" | "lose" }>,
  reason: string,
): RunChange => ({
  run,
  next: transition(lifeOf(run), change),
  events: [{ kind: "debug_window_ended", payload: { reason }, executionId: run.execution.id }],
  undelivered: reason === "window_over" ? "debug_window_ended" : "debug_session_lost",
});
