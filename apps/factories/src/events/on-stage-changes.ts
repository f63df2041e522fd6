import type { EventHandlers } from "@millwright/events";
import type { OnDeliveryEventsDeps } from "./on-delivery-events.ts";

/** This service's own tasks whose stage changed: automations look at them. */
export const onStageChanges = ({ hasListener, enqueueDecision }: Pick<OnDeliveryEventsDeps, "hasListener" | "enqueueDecision">): EventHandlers => ({
  async "millwright.task.updated.v1"(tx, { uid, teamUid = "", requestId, occurredAt, payload }) {
    const { factory_uid: factoryUid, task_uid, stage, previous_stage, by_root_run_uid } = payload as Record<string, string | undefined>;
    if (factoryUid === undefined || previous_stage === undefined || !(await hasListener(tx, factoryUid, "factory"))) return;
    await enqueueDecision(tx, {
      uid, factoryUid, teamUid, provider: "factory", event: "work_item_stage_changed", deliveryUid: null, requestId, occurredAt: occurredAt.toISOString(),
      subject: { task_uid: task_uid!, stage: stage!, previous_stage, ...(by_root_run_uid !== undefined && { by_root_run_uid }) },
    });
  },
});
