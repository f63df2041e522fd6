import type { EventsHandlers } from "@millwright/events";
import { hearEvents, type HearEventsDeps } from "./hear-events.ts";

/** This service's own tasks whose stage changed: automations look at them. */
export const onStageChanges = (deps: HearEventsDeps): EventsHandlers => ({
  "millwright.task.updated.v1": hearEvents(deps, "factory", ({ uid, teamUid = "", requestId, occurredAt, payload }) => {
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
  }),
});
