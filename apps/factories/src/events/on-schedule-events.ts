import type { EventHandlers } from "@millwright/events";
import type { OnDeliveryEventsDeps } from "./on-delivery-events.ts";

/** Slots of automations' schedules, each told once for ever by the scheduler. */
export const onScheduleEvents = ({ hasListener, enqueueDecision }: Pick<OnDeliveryEventsDeps, "hasListener" | "enqueueDecision">): EventHandlers => ({
  async "millwright.schedule_trigger.fired.v1"(tx, { uid, teamUid = "", requestId, occurredAt, payload }) {
    const { factory_uid: factoryUid, automation_uid, cron, slot_at, missed, name } = payload as { factory_uid: string; automation_uid: string; cron: string; slot_at: string; missed: number; name?: string };
    if (!(await hasListener(tx, factoryUid, "schedule"))) return;
    await enqueueDecision(tx, {
      uid, factoryUid, teamUid, provider: "schedule", event: "cron_fired", deliveryUid: null, requestId, occurredAt: occurredAt.toISOString(),
      subject: { automation_uid, cron, slot_at, missed, ...(name !== undefined && { name }) },
    });
  },
});
