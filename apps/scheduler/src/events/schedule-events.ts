import type { NewEvent } from "@millwright/events";
import type { Schedule } from "../domain/schedule.ts";
import type { Origin } from "./origin.ts";

/** Facts about schedules. Payload: `{schedule_uid, name, cron_schedule, enabled}`, and for updates the changed members. */
export const scheduleCreated = (schedule: Schedule, origin: Origin): NewEvent => fact("created", schedule, origin);
export const scheduleUpdated = (schedule: Schedule, origin: Origin, changed: readonly string[]): NewEvent =>
  fact("updated", schedule, origin, { changed: [...changed] });
export const scheduleDeleted = (schedule: Schedule, origin: Origin): NewEvent => fact("deleted", schedule, origin);

const fact = (past: string, schedule: Schedule, origin: Origin, more: { changed?: string[] } = {}): NewEvent => ({
  type: `millwright.schedule.${past}.v1`,
  entity: "schedule",
  entityUid: schedule.uid,
  entityVersion: schedule.version,
  ...(schedule.owner.type === "team" ? { teamUid: schedule.owner.uid } : {}),
  ...origin,
  payload: {
    schedule_uid: schedule.uid,
    name: schedule.name,
    cron_schedule: schedule.cronSchedule,
    enabled: schedule.enabled,
    ...more,
  },
});
