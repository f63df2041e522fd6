import type { LeaseRef } from "../../runs/domain/worker-session.ts";

/**
 * Result of a tick of the reaper. `skipped`: another replica is running a tick. `extended`: all leases were extended
 * after a pause. `checked`: the leases were checked.
 */
export type ReaperTick = {
  readonly outcome: "skipped" | "extended" | "checked";
  readonly overdue: readonly LeaseRef[];
};
