import type { RunState } from "./run.ts";

/** A run of a team was created or changed its state. */
export type TeamEvent = {
  /** Its place in the log of this service: rises over all runs of all teams. */
  readonly sequence: number;
  readonly uid: string;
  readonly teamUid: string;
  readonly runUid: string;
  readonly eventType: string;
  readonly occurredAt: Date;
};

export type TeamEventQuery = {
  readonly teamUids: readonly string[];
  /** Empty: all. */
  readonly runUids: readonly string[];
  /** What a run token is bound to (`canSee`, run-visibility.ts); absent: all runs of the teams. */
  readonly within?: { readonly rootRunUid: string; readonly factoryUid?: string | undefined };
};

/** What a run's new state is called (fields-runs §12, and the states that are not published there). */
const NAMES: Readonly<Record<RunState, string>> = {
  QUEUED: "run_queued",
  PENDING: "run_pending",
  CLAIMED: "run_claimed",
  INPROGRESS: "run_in_progress",
  SUCCEEDED: "run_succeeded",
  FAILED: "run_failed",
  ERROR: "run_errored",
  BLOCKED: "run_blocked",
  CANCELLED: "run_cancelled",
};

/** `to`: the state it came to; null: it was created. */
export const teamEventType = (to: RunState | null): string => (to === null ? "run_created" : NAMES[to]);
