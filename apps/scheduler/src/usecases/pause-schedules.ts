import type { Sql } from "@millwright/database";
import { changeSchedule, type Schedule } from "../domain/schedule.ts";
import type { Origin } from "../events/origin.ts";
import { scheduleUpdated } from "../events/schedule-events.ts";
import { readTime, type DatabaseTime } from "../store/database-time.ts";
import { updateSchedulesOfAgent, updateSchedulesOfMember, type ChangeSchedule } from "../store/schedule-store.ts";

/**
 * Pauses the schedules of a deleted agent until they name another agent and are resumed: they cannot create runs
 * without it.
 */
export const pauseForAgentDeletion = async (
  tx: Sql,
  time: DatabaseTime,
  agentUid: string,
  origin: Origin,
): Promise<void> =>
  updateSchedulesOfAgent(
    tx,
    agentUid,
    pausing(await readTime(tx, time), origin, { lastSpawnError: "The agent of the schedule was deleted." }),
  );

/** Pauses schedules whose creator lost the right to create runs in the team, until another person resumes them. */
export const pauseForCreatorLeft = async (
  tx: Sql,
  time: DatabaseTime,
  member: { readonly teamUid: string; readonly userUid: string },
  origin: Origin,
): Promise<void> =>
  updateSchedulesOfMember(tx, member, pausing(await readTime(tx, time), origin, { creatorLostAccess: true }));

const pausing =
  (now: Date, origin: Origin, reason: Partial<Schedule>): ChangeSchedule =>
  (schedule) => {
    const paused = changeSchedule(schedule, { ...schedule, enabled: false }, schedule.updatedByUid, now);
    const next = { ...paused, ...reason };
    return { next, event: scheduleUpdated(next, origin, ["enabled"]) };
  };
