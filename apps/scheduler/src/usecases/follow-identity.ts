import type { NewEvent } from "@millwright/events";
import { changeSchedule, type Schedule } from "../domain/schedule.ts";

/** Changes the live schedules of an agent, in the transaction that hears that it is no more. */
export type UpdateAgentSchedules = (change: (schedule: Schedule) => { next: Schedule; event: NewEvent }) => Promise<void>;

/** Without its agent a schedule cannot make runs: it is paused and says why, until someone names another agent and resumes it. */
export const followAgentDeletion = (updateAll: UpdateAgentSchedules, now: Date, updated: (next: Schedule) => NewEvent): Promise<void> =>
  updateAll((schedule) => {
    const next = { ...changeSchedule(schedule, { ...schedule, enabled: false }, schedule.editorUid, now), lastSpawnError: "The agent of the schedule was deleted." };
    return { next, event: updated(next) };
  });
