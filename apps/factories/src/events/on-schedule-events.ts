import type { EventsHandlers } from "@millwright/events";
import { hearEvents, type HearEventsDeps } from "./hear-events.ts";

/** Slots of automations' schedules, each told once for ever by the scheduler. */
export const onScheduleEvents = (deps: HearEventsDeps): EventsHandlers => ({
  "millwright.schedule_trigger.fired.v1": hearEvents(
    deps,
    "schedule",
    ({ uid, teamUid = "", requestId, occurredAt, payload }) => {
      const {
        factory_uid: factoryUid,
        automation_uid,
        cron,
        slot_at,
        missed,
        name,
      } = payload as {
        factory_uid: string;
        automation_uid: string;
        cron: string;
        slot_at: string;
        missed: number;
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
        subject: { automation_uid, cron, slot_at, missed, ...(name !== undefined && { name }) },
      };
    },
  ),
});
