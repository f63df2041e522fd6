import type { EventHandlers } from "@millwright/events";
import { enqueueWork } from "@millwright/work";
import { REGISTER_PUSH } from "../domain/branch.ts";
import { tracksAny } from "../store/branch-store.ts";

/** The names of push events in the code hosts' headers. */
const PUSHES: readonly unknown[] = ["push", "Push Hook"];

/**
 * Enqueues pushes, which may have moved a tracked branch. The pushed refs are in the delivery, which the webhook
 * ingress stores.
 */
export const onPushEvents = (): EventHandlers => ({
  async "millwright.code_host_delivery.accepted.v1"(tx, { entityUid: deliveryUid, teamUid, payload }) {
    if (teamUid === undefined || !PUSHES.includes(payload["event"]) || !(await tracksAny(tx, teamUid))) return;
    await enqueueWork(tx, { kind: REGISTER_PUSH, key: deliveryUid, payload: { deliveryUid, teamUid }, teamUid });
  },
});
