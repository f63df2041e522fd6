import type { NewEvent } from "@millwright/events";
import { newUid } from "@millwright/ids";
import type { TakenSlots, TriggerSchedule } from "../domain/trigger-schedule.ts";

/** A slot of an automation's schedule came due; or was missed, when that was too long ago. Payload: docs/events.md. */
export const slotTaken = (schedule: TriggerSchedule, { slotAt, isFired, missed }: TakenSlots): NewEvent => ({
  type: `millwright.schedule_trigger.${isFired ? "fired" : "missed"}.v1`,
  entity: "schedule_trigger",
  entityUid: schedule.uid,
  entityVersion: schedule.version,
  teamUid: schedule.teamUid,
  actor: { type: "service", uid: "scheduler" },
  requestId: newUid(),
  payload: {
    factory_uid: schedule.factoryUid,
    automation_uid: schedule.automationUid,
    cron: schedule.cron,
    slot_at: slotAt.toISOString(),
    missed,
    ...(schedule.name !== "" && { name: schedule.name }),
  },
});
