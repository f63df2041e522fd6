import type { NewEvent } from "@millwright/events";
import { newUid } from "@millwright/ids";
import type { PassedSlots, TriggerSchedule } from "../domain/trigger-schedule.ts";

/**
 * Returns the event of a slot of an automation's schedule: fired, or missed if it is too old. Payload: docs/events.md.
 */
export const triggerSlotEvent = (
  schedule: TriggerSchedule,
  { slotAt, isFired, missedCount }: PassedSlots,
): NewEvent => ({
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
    missed_count: missedCount,
    ...(schedule.name !== "" && { name: schedule.name }),
  },
});
