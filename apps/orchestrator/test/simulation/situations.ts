import type { RawView } from "./view.ts";

/** The state of the run when a follow-up was accepted. With it, a simulation reports what it has tried. */
export type Situation =
  | "queued"
  | "starting"
  | "running"
  | "waiting"
  | "cancelled"
  | "failed setup"
  | "debug window"
  | "ended"
  | "resumed";

/** Returns the situation of every accepted follow-up, derived from the events before it. */
export function situationsOf({ runs, events }: RawView): Situation[] {
  return runs.flatMap(({ uid }) => {
    let situation: Situation = "queued";
    let hasEnded = false;
    const found: Situation[] = [];
    for (const { kind, payload } of events.filter(({ runUid }) => runUid === uid).toSorted((a, b) => a.seq - b.seq)) {
      if (kind === "followup_accepted") found.push(hasEnded && situation === "queued" ? "resumed" : situation);
      if (kind === "run_queued") situation = "queued";
      if (kind === "run_claimed") situation = "starting";
      if (kind === "agent_started" && situation === "starting") situation = "running";
      if (kind === "debug_window_opened") situation = "debug window";
      if (kind === "debug_window_ended") situation = "failed setup";
      if (kind === "run_waiting") situation = "waiting";
      if (kind !== "run_finished") continue;
      const { state } = payload as { state: string };
      situation =
        state === "CANCELLED" ? "cancelled" : state === "FAILED" && situation === "starting" ? "failed setup" : "ended";
      hasEnded = true;
    }
    return found;
  });
}
