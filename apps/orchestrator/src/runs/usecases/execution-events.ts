import { omitUndefined } from "@millwright/json";
import type { NewRunEvent } from "../domain/run-events.ts";
import { lifecycleOf, type LockedRun, type RunChange } from "../domain/run-change.ts";
import { transition, type Change, type Next } from "../domain/run-state.ts";
import type { TerminalState } from "../domain/run.ts";

/** Why a run is queued again. */
export type QueueReason = "offer_expired" | "declined" | "followup" | "children" | "restarted" | "resumed";

export const requeuedEvent = (reason: QueueReason, executionId?: number): NewRunEvent => ({
  kind: "run_queued",
  payload: { reason },
  executionId,
});

/** The reasons of terminal states that have no error code. */
const CAUSES: Readonly<Record<TerminalState, string>> = {
  SUCCEEDED: "completed",
  BLOCKED: "awaiting_input",
  CANCELLED: "cancelled",
  FAILED: "internal_error",
  ERROR: "internal_error",
};

/**
 * Returns the event of the end of a run. `reason` is always present and machine-readable; it can be more specific than
 * the public error code, for example container_oom.
 */
export const finished = (
  next: Next,
  executionId: number | undefined,
  more: { reason?: string; cancelled_by?: string } = {},
): NewRunEvent => ({
  kind: "run_finished",
  payload: omitUndefined({
    state: next.run,
    message: next.status?.message,
    error_code: next.status?.errorCode || undefined,
    retryable: next.status?.retryable,
    reason: next.status?.errorCode ?? CAUSES[next.run as TerminalState],
    ...more,
  }),
  executionId,
});

/**
 * Returns the change at the end of a debug window. Undelivered messages are dropped; the state of the run is unchanged.
 */
export const windowEnded = (
  run: LockedRun,
  change: Extract<Change, { type: "complete" | "lose" }>,
  reason: string,
): RunChange => ({
  run,
  next: transition(lifecycleOf(run), change),
  events: [{ kind: "debug_window_ended", payload: { reason }, executionId: run.execution.id }],
  undelivered: reason === "window_expired" ? "debug_window_ended" : "debug_session_lost",
});
