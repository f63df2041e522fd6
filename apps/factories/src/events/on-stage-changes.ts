import type { EventsHandlers } from "@millwright/events";
import { enqueueTriggerEvents } from "./enqueue-trigger-events.ts";

/** Enqueues stage changes of this service's own tasks. */
export const onStageChanges = (): EventsHandlers => ({
  "millwright.task.updated.v1": enqueueTriggerEvents(
    "factory",
    ({ uid, teamUid = "", requestId, occurredAt, payload }) => {
      const {
        factory_uid: factoryUid,
        task_uid,
        stage,
        previous_stage,
        by_root_run_uid,
      } = payload as Record<string, string | undefined>;
      if (factoryUid === undefined || previous_stage === undefined) return undefined;
      return {
        uid,
        factoryUid,
        teamUid,
        event: "work_item_stage_changed",
        deliveryUid: null,
        requestId,
        occurredAt: occurredAt.toISOString(),
        subject: {
          task_uid: task_uid!,
          stage: stage!,
          previous_stage,
          ...(by_root_run_uid !== undefined && { by_root_run_uid }),
        },
      };
    },
  ),
});
