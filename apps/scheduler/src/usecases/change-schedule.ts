import { actorOf, type Caller } from "@millwright/caller";
import type { NewEvent } from "@millwright/events";
import {
  changeSchedule,
  checkSettings,
  type GivenSettings,
  type Schedule,
  type ScheduleSettings,
  type ScheduleUid,
  withNewCreator,
} from "../domain/schedule.ts";
import { originOf } from "../events/origin.ts";
import { scheduleDeleted, scheduleUpdated } from "../events/schedule-events.ts";
import { requireReferences, type ReferenceDeps } from "./create-schedule.ts";
import { findSchedule, type ScopeDeps } from "./scope.ts";

type Update = (schedule: Schedule, now: Date) => { next: Schedule; event: NewEvent } | undefined;

export type ChangeScheduleDeps = ScopeDeps &
  ReferenceDeps & {
    schedules: {
      /** Locks the schedule, applies the change and stores it with its event. Errors: schedule_not_found. */
      update(uid: ScheduleUid, change: Update): Promise<Schedule>;
      /** Errors: schedule_not_found. */
      delete(uid: ScheduleUid, event: (schedule: Schedule) => NewEvent): Promise<void>;
    };
  };

/**
 * Replaces a schedule's settings except an absent `agentConfig`. Existing runs are unchanged.
 *
 * Errors: schedule_not_found · not_authorized · those of `checkSettings` · agent_not_found · environment_not_found ·
 * environment_personal.
 */
export async function replaceSchedule(
  deps: ChangeScheduleDeps,
  caller: Caller,
  uid: string,
  given: GivenSettings,
): Promise<Schedule> {
  const found = await findSchedule(deps, caller, uid, "schedule.manage");
  await requireReferences(deps, caller, found.owner, checkSettings(given, found.owner, found), found);
  return deps.schedules.update(found.uid, (schedule, now) => {
    const settings = checkSettings(given, schedule.owner, schedule);
    return updated(schedule, settings, caller, now);
  });
}

/**
 * Pauses or resumes a schedule; repeating it changes nothing. Resuming a schedule whose creator left makes the caller
 * its creator. Times within a pause have no slots. Errors: schedule_not_found · not_authorized.
 */
export async function setEnabled(
  deps: ChangeScheduleDeps,
  caller: Caller,
  uid: string,
  enabled: boolean,
): Promise<Schedule> {
  const found = await findSchedule(deps, caller, uid, "schedule.manage");
  return deps.schedules.update(found.uid, (schedule, now) =>
    schedule.enabled === enabled ? undefined : updated(schedule, { ...schedule, enabled }, caller, now),
  );
}

/** Deletes a schedule: no slot fires any more; existing runs continue. Errors: schedule_not_found · not_authorized. */
export async function deleteSchedule(deps: ChangeScheduleDeps, caller: Caller, uid: string): Promise<void> {
  const found = await findSchedule(deps, caller, uid, "schedule.manage");
  await deps.schedules.delete(found.uid, (schedule) => scheduleDeleted(schedule, originOf(caller)));
}

function updated(
  schedule: Schedule,
  settings: ScheduleSettings,
  caller: Caller,
  now: Date,
): { next: Schedule; event: NewEvent } {
  const { type, uid } = actorOf(caller);
  const next = withNewCreator(changeSchedule(schedule, settings, uid, now), { type, uid });
  return { next, event: scheduleUpdated(next, originOf(caller), changedMembers(schedule, next)) };
}

const MEMBERS = {
  name: "name",
  cronSchedule: "cron_schedule",
  timeZone: "time_zone",
  enabled: "enabled",
  prompt: "prompt",
  agentConfig: "agent_config",
  agentUid: "agent_uid",
  mode: "mode",
  metadata: "metadata",
  overlapPolicy: "overlap_policy",
  catchUpSeconds: "catch_up_seconds",
} as const satisfies Record<keyof ScheduleSettings, string>;

const changedMembers = (before: ScheduleSettings, after: ScheduleSettings): string[] =>
  Object.entries(MEMBERS).flatMap(([key, name]) =>
    JSON.stringify(before[key as keyof ScheduleSettings]) === JSON.stringify(after[key as keyof ScheduleSettings])
      ? []
      : [name],
  );
