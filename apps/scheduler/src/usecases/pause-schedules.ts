import type { NewEvent } from "@millwright/events";
import { changeSchedule, type Schedule } from "../domain/schedule.ts";

/** Changes schedules in the transaction that handles the event. */
export type UpdateSchedules = (change: (schedule: Schedule) => { next: Schedule; event: NewEvent }) => Promise<void>;

/**
 * Pauses the schedules of a deleted agent until they name another agent and are resumed: they cannot create runs
 * without it.
 */
export const pauseForAgentDeletion = (
  updateAll: UpdateSchedules,
  now: Date,
  updated: (next: Schedule) => NewEvent,
): Promise<void> =>
  updateAll((schedule) => {
    const next = { ...paused(schedule, now), lastSpawnError: "The agent of the schedule was deleted." };
    return { next, event: updated(next) };
  });

/** Pauses schedules whose creator lost the right to create runs in the team, until another person resumes them. */
export const pauseForCreatorLeft = (
  updateAll: UpdateSchedules,
  now: Date,
  updated: (next: Schedule) => NewEvent,
): Promise<void> =>
  updateAll((schedule) => {
    const next = { ...paused(schedule, now), creatorLostAccess: true };
    return { next, event: updated(next) };
  });

const paused = (schedule: Schedule, now: Date): Schedule =>
  changeSchedule(schedule, { ...schedule, enabled: false }, schedule.updatedByUid, now);
