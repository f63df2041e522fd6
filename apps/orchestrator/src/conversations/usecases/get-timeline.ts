import type { Caller } from "@millwright/caller";
import { timelineOf, type TimelineEntry } from "../domain/timeline-view.ts";
import type { Run } from "../../runs/domain/run.ts";
import { readAllEvents, type ListRunEvents } from "../../runs/usecases/read-all-events.ts";

export type GetTimelineDeps = {
  readonly getVisibleRun: (caller: Caller, uid: string) => Promise<Run>;
  readonly listRunEvents: ListRunEvents;
};

/** Returns the setup and lifecycle events of a run, oldest first. Errors: run_not_found. */
export async function getTimeline(deps: GetTimelineDeps, caller: Caller, runUid: string): Promise<TimelineEntry[]> {
  const run = await deps.getVisibleRun(caller, runUid);
  return timelineOf(await readAllEvents(deps.listRunEvents, run.uid));
}
