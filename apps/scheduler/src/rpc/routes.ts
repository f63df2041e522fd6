import type { ConnectRouter } from "@connectrpc/connect";
import { scheduler } from "@millwright/contracts";
import { served } from "@millwright/rpc";
import { deleteSchedule, replaceSchedule, setEnabled, type ChangeScheduleDeps } from "../usecases/change-schedule.ts";
import { createSchedule, type CreateScheduleDeps } from "../usecases/create-schedule.ts";
import { listSchedules, listSlots, type ListSchedulesDeps, type ListSlotsDeps } from "../usecases/list-schedules.ts";
import { findSchedule } from "../usecases/scope.ts";
import { readOwner, readSettings, toScheduleMessage, toSlotMessage } from "./schedule-messages.ts";

export type RoutesDeps = CreateScheduleDeps & ChangeScheduleDeps & ListSchedulesDeps & ListSlotsDeps;

/** Registers every RPC of this service with the use case that serves it. */
export function schedulerRoutes(router: ConnectRouter, deps: RoutesDeps): void {
  router.service(scheduler.ScheduleService, {
    createSchedule: served(async ({ schedule, idempotencyKey }: scheduler.CreateScheduleRequest, caller) => ({
      schedule: toScheduleMessage(
        await createSchedule(deps, caller, {
          owner: readOwner(schedule),
          settings: readSettings(schedule),
          idempotencyKey,
        }),
      ),
    })),
    getSchedule: served(async ({ uid }: scheduler.GetScheduleRequest, caller) => ({
      schedule: toScheduleMessage(await findSchedule(deps, caller, uid, "run.view")),
    })),
    listSchedules: served(async ({ teamUid }: scheduler.ListSchedulesRequest, caller) => ({
      schedules: (await listSchedules(deps, caller, teamUid)).map(toScheduleMessage),
    })),
    replaceSchedule: served(async ({ schedule }: scheduler.ReplaceScheduleRequest, caller) => ({
      schedule: toScheduleMessage(await replaceSchedule(deps, caller, schedule?.uid ?? "", readSettings(schedule))),
    })),
    deleteSchedule: served(async ({ uid }: scheduler.DeleteScheduleRequest, caller) => {
      await deleteSchedule(deps, caller, uid);
      return {};
    }),
    setEnabled: served(async ({ uid, enabled }: scheduler.SetEnabledRequest, caller) => ({
      schedule: toScheduleMessage(await setEnabled(deps, caller, uid, enabled)),
    })),
    listSlots: served(async (request: scheduler.ListSlotsRequest, caller) => {
      const { slots, nextPageToken } = await listSlots(deps, caller, request);
      return { slots: slots.map(toSlotMessage), nextPageToken };
    }),
  });
}
