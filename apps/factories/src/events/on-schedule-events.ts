import type { EventsHandlers } from "@millwright/events";
import { omitUndefined } from "@millwright/json";
import { enqueueTriggerEvents } from "./enqueue-trigger-events.ts";

/** Enqueues fired slots of automations' schedules; the scheduler publishes each once. */
export const onScheduleEvents = (): EventsHandlers => ({
  "millwright.schedule_trigger.fired.v1": enqueueTriggerEvents(
    "schedule",
    ({ uid, teamUid = "", requestId, occurredAt, payload }) => {
      const {
        factory_uid: factoryUid,
        automation_uid,
        cron,
        slot_at,
        missed_count,
        name,
      } = payload as {
        factory_uid: string;
        automation_uid: string;
        cron: string;
        slot_at: string;
        missed_count: number;
        name?: string;
      };
      return {
        uid,
        factoryUid,
        teamUid,
        event: "cron_fired",
        deliveryUid: null,
        requestId,
        occurredAt: occurredAt.toISOString(),
        subject: omitUndefined({ automation_uid, cron, slot_at, missed_count, name }),
      };
    },
  ),
});
