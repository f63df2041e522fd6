import type { Sql } from "@millwright/database";
import type { EventHandlers, StoredEvent } from "@millwright/events";
import type { TriggerEvent } from "../domain/trigger-event.ts";

export type OnDeliveryEventsDeps = {
  hasListener: (tx: Sql, factoryUid: string, provider: string) => Promise<boolean>;
  /** Leaves the decision as work: it reads the payload, which is elsewhere. */
  enqueueDecision: (tx: Sql, event: TriggerEvent) => Promise<unknown>;
};

/** Deliveries that webhook-ingress has accepted: automations look at them. */
export const onDeliveryEvents = ({ hasListener, enqueueDecision }: OnDeliveryEventsDeps): EventHandlers => ({
  async "millwright.delivery.accepted.v1"(tx, event) {
    const delivered = deliveredBy(event);
    if (await hasListener(tx, delivered.factoryUid, delivered.provider)) await enqueueDecision(tx, delivered);
  },
});

function deliveredBy({ entityUid, teamUid = "", requestId, occurredAt, payload }: StoredEvent): TriggerEvent {
  const { factory_uid: factoryUid, webhook_uid, delivery_id, size_bytes } = payload as { factory_uid: string; webhook_uid: string; delivery_id: string; size_bytes: number };
  return {
    uid: entityUid, factoryUid, teamUid, provider: "webhook", event: "received", deliveryUid: entityUid, requestId, occurredAt: occurredAt.toISOString(),
    subject: { webhook_uid, delivery_id, size_bytes },
  };
}
