import type { NewEvent } from "@millwright/events";
import { changeSchedule, type Schedule } from "../domain/schedule.ts";

/** Changes schedules in the transaction that handles the event. */
export type UpdateSchedules = (change: (schedule: Schedule) => { next: Schedule; event: NewEvent }) => Promise<void>;

/** Without its agent a schedule cannot create runs: it is paused with the reason until somebody names another agent and resumes it. */
export const followAgentDeletion = (
  updateAll: UpdateSchedules,
  now: Date,
  updated: (next: Schedule) => NewEvent,
): Promise<void> =>
  updateAll((schedule) => {
    const next = { ...paused(schedule, now), lastSpawnError: "The agent of the schedule was deleted." };
    return { next, event: updated(next) };
  });

/** Nothing runs as a person without the right to create runs in the team: their schedules of the team are paused until somebody resumes them as their own. */
export const followCreatorLeft = (
  updateAll: UpdateSchedules,
  now: Date,
  updated: (next: Schedule) => NewEvent,
): Promise<void> =>
  updateAll((schedule) => {
    const next = { ...paused(schedule, now), creatorLeft: true };
    return { next, event: updated(next) };
  });

const paused = (schedule: Schedule, now: Date): Schedule =>
  changeSchedule(schedule, { ...schedule, enabled: false }, schedule.editorUid, now);
