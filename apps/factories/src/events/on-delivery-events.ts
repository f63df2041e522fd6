import type { EventHandlers, EventsHandlers, StoredEvent } from "@millwright/events";
import type { TriggerEvent } from "../domain/trigger-event.ts";
import { teamFactoriesWithTrigger } from "../store/automation-store.ts";
import { enqueueDecisions } from "../store/decision-store.ts";
import { enqueueTriggerEvents } from "./enqueue-trigger-events.ts";

/**
 * Enqueues accepted deliveries for automations. Deliveries of code hosts belong to a team and go to all its factories.
 */
export const onDeliveryEvents = (): { handlers: EventHandlers; batchHandlers: EventsHandlers } => ({
  batchHandlers: { "millwright.delivery.accepted.v1": enqueueTriggerEvents("webhook", deliveredBy) },
  handlers: {
    async "millwright.code_host_delivery.accepted.v1"(
      tx,
      { entityUid, teamUid = "", requestId, occurredAt, payload, traceparent },
    ) {
      const { provider, event, code_host_uid, delivery_id, size_bytes } = payload as {
        provider: string;
        event: string;
        code_host_uid: string;
        delivery_id: string;
        size_bytes: number;
      };
      const triggerEvent = {
        uid: entityUid,
        teamUid,
        provider,
        event,
        deliveryUid: entityUid,
        requestId,
        occurredAt: occurredAt.toISOString(),
        subject: { code_host_uid, delivery_id, size_bytes },
      };
      const factoryUids = await teamFactoriesWithTrigger(tx, teamUid, provider);
      await enqueueDecisions(
        tx,
        factoryUids.map((factoryUid) => ({ event: { ...triggerEvent, factoryUid }, traceparent })),
      );
    },
  },
});

function deliveredBy({
  entityUid,
  teamUid = "",
  requestId,
  occurredAt,
  payload,
}: StoredEvent): Omit<TriggerEvent, "provider"> {
  const {
    factory_uid: factoryUid,
    webhook_uid,
    delivery_id,
    size_bytes,
  } = payload as { factory_uid: string; webhook_uid: string; delivery_id: string; size_bytes: number };
  return {
    uid: entityUid,
    factoryUid,
    teamUid,
    event: "received",
    deliveryUid: entityUid,
    requestId,
    occurredAt: occurredAt.toISOString(),
    subject: { webhook_uid, delivery_id, size_bytes },
  };
}
