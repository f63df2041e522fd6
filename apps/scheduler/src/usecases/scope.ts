import { requireVerbAs, type Caller, type Verb } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { as, isUuid } from "@millwright/ids";
import type { Schedule, ScheduleUid } from "../domain/schedule.ts";

export type ScopeDeps = { schedules: { find(uid: ScheduleUid): Promise<Schedule | undefined> } };

/**
 * Returns a schedule that exists, that the caller or one of their teams owns, and for which the caller has `verb`. Runs
 * of agents can access none.
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
