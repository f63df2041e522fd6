import type { EventsHandlers } from "@millwright/events";
import { enqueueAllWork } from "@millwright/work";
import { mayReportPullRequest, RECORD_DELIVERY } from "../usecases/record-deliveries.ts";

/** Deliveries that a code host has sent. The events do not carry the payloads: these are read afterwards. */
export const onDeliveryEvents = (): EventsHandlers => ({
  async "millwright.code_host_delivery.accepted.v1"(tx, events) {
    await enqueueAllWork(
      tx,
      events.flatMap(({ entityUid: key, teamUid, occurredAt, traceparent, payload }) => {
        if (teamUid === undefined || !mayReportPullRequest(payload["event"])) return [];
        const receivedAt = occurredAt.toISOString();
        return { kind: RECORD_DELIVERY, key, payload: { receivedAt }, teamUid, traceparent };
      }),
    );
  },
});
