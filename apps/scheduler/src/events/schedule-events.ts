import type { NewEvent } from "@millwright/events";
import type { Schedule } from "../domain/schedule.ts";
import type { Origin } from "./origin.ts";

/**
 * Events of schedules. Payload: `{schedule_uid, name, cron_schedule, enabled}`, and for updates the changed members.
 */
export const scheduleCreated = (schedule: Schedule, origin: Origin): NewEvent =>
  scheduleEvent("created", schedule, origin);
export const scheduleUpdated = (schedule: Schedule, origin: Origin, changed: readonly string[]): NewEvent =>
  scheduleEvent("updated", schedule, origin, { changed: [...changed] });
export const scheduleDeleted = (schedule: Schedule, origin: Origin): NewEvent =>
  scheduleEvent("deleted", schedule, origin);

const scheduleEvent = (
  verb: string,
  schedule: Schedule,
  origin: Origin,
  members: { changed?: string[] } = {},
): NewEvent => ({
  type: `millwright.schedule.${verb}.v1`,
  entity: "schedule",
  entityUid: schedule.uid,
  entityVersion: schedule.version,
  teamUid: schedule.owner.type === "team" ? schedule.owner.uid : undefined,
  ...origin,
  payload: {
    schedule_uid: schedule.uid,
    name: schedule.name,
    cron_schedule: schedule.cronSchedule,
    enabled: schedule.enabled,
    ...members,
  },
});
