import { requireVerbAs, type Caller, type Verb } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { as, isUuid } from "@millwright/ids";
import type { Schedule, ScheduleUid } from "../domain/schedule.ts";

export type ScopeDeps = { schedules: { find(uid: ScheduleUid): Promise<Schedule | undefined> } };

/**
 * The one way to reach a schedule: it exists, it is the caller's own or its team's, and the caller may do `verb` there. The run
 * of an agent reaches none.
 *
 * Errors: schedule_not_found (absent, malformed, or not visible) · not_authorized.
 */
export async function findSchedule(deps: ScopeDeps, caller: Caller, uid: string, verb: Verb): Promise<Schedule> {
  const schedule =
    isUuid(uid) && !caller.run ? await deps.schedules.find(as<ScheduleUid>(uid.toLowerCase())) : undefined;
  if (!schedule) throw notFound("schedule");
  requireVerbAs(caller, schedule.owner, "run.view", "schedule");
  requireVerbAs(caller, schedule.owner, verb, "schedule");
  return schedule;
}
