import type { EventHandlers } from "@millwright/events";
import { enqueueWork } from "@millwright/work";
import { mayReportPullRequest, RECORD_DELIVERY } from "../usecases/record-delivery.ts";

/** Deliveries that a code host has sent. The event does not carry the payload: it is read afterwards. */
export const onDeliveryEvents = (): EventHandlers => ({
  async "millwright.code_host_delivery.accepted.v1"(tx, { entityUid: deliveryUid, teamUid, occurredAt, payload }) {
    if (teamUid === undefined || !mayReportPullRequest(payload["event"])) return;
    const receivedAt = occurredAt.toISOString();
    await enqueueWork(tx, { kind: RECORD_DELIVERY, key: deliveryUid, payload: { receivedAt }, teamUid });
  },
});
