import type { RunState } from "./run.ts";

/** The creation or a state change of a team's run. */
export type TeamEvent = {
  /** Its position in the event log of this service: ascending over the runs of all teams. */
  readonly sequence: number;
  readonly uid: string;
  readonly teamUid: string;
  readonly runUid: string;
  readonly eventType: string;
  readonly occurredAt: Date;
};

export type TeamEventQuery = {
  readonly teamUids: readonly string[];
  /** Empty: all runs. */
  readonly runUids: readonly string[];
  /** The runs that a run token is restricted to (`canSee`, run-visibility.ts); absent: all runs of the teams. */
  readonly within?: { readonly rootRunUid: string; readonly factoryUid?: string | undefined };
};

/** The event type of each new state. Those of QUEUED, PENDING and CLAIMED extend the published types. */
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

/** Returns the type of an event. `to`: the new state; null: the run was created. */
export const teamEventType = (to: RunState | null): string => (to === null ? "run_created" : NAMES[to]);
