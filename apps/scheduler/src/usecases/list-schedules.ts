import { ownersWith, type Caller } from "@millwright/caller";
import { invalidArgument } from "@millwright/errors";
import { clampPageSize, type Cursors } from "@millwright/paging";
import type { Owner, Schedule, ScheduleUid } from "../domain/schedule.ts";
import { SLOT_STATES, type Slot, type SlotState } from "../domain/slot.ts";
import { findSchedule, type ScopeDeps } from "./scope.ts";

export type ListSchedulesDeps = { schedules: { list(owners: readonly Owner[]): Promise<Schedule[]> } };

/** Lists schedules by name: of the given team, or of all teams of the caller and their own. Runs of agents see none. */
export async function listSchedules(deps: ListSchedulesDeps, caller: Caller, teamUid: string): Promise<Schedule[]> {
  if (caller.run) return [];
  return deps.schedules.list(ownersWith(caller, "run.view", teamUid || undefined));
}

export type ListSlotsDeps = ScopeDeps & {
  slots: {
    list(uid: ScheduleUid, query: { states: readonly SlotState[]; before?: Date; limit: number }): Promise<Slot[]>;
  };
  cursors: Cursors;
};

const PAGE = { default: 50, max: 500 };

/** Lists the slots of a schedule, newest first. Errors: schedule_not_found · invalid_state · invalid_cursor. */
export async function listSlots(
  deps: ListSlotsDeps,
  caller: Caller,
  request: { scheduleUid: string; states: readonly string[]; pageSize: number; pageToken: string },
): Promise<{ slots: Slot[]; nextPageToken: string }> {
  const { uid } = await findSchedule(deps, caller, request.scheduleUid, "run.view");
  const states = request.states.map(stateOf);
  const bind = { uid, states: states.toSorted() };
  const before =
    request.pageToken === "" ? undefined : new Date(String(deps.cursors.open("slots", bind, request.pageToken)[0]));
  const limit = clampPageSize(request.pageSize, PAGE);
  const rows = await deps.slots.list(uid, { states, limit: limit + 1, before });
  const slots = rows.slice(0, limit);
  const last = rows.length > limit ? slots.at(-1) : undefined;
  return { slots, nextPageToken: last ? deps.cursors.seal("slots", bind, [last.slotAt.toISOString()]) : "" };
}

function stateOf(text: string): SlotState {
  const state = SLOT_STATES.find((known) => known === text);
  if (!state) throw invalidArgument("invalid_state", `state must be one of ${SLOT_STATES.join(", ")} (got "${text}").`);
  return state;
}
