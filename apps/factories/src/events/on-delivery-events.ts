import type { Sql } from "@millwright/database";
import type { EventHandlers, StoredEvent } from "@millwright/events";
import type { TriggerEvent } from "../domain/trigger-event.ts";

export type OnDeliveryEventsDeps = {
  hasListener: (tx: Sql, factoryUid: string, provider: string) => Promise<boolean>;
  /** The factories of a team that have one. */
  listeningFactories: (tx: Sql, teamUid: string, provider: string) => Promise<string[]>;
  /** Leaves the decision as work: it reads the payload, which is elsewhere. */
  enqueueDecision: (tx: Sql, event: TriggerEvent) => Promise<unknown>;
};

/** Deliveries that webhook-ingress has accepted: automations look at them. Those of code hosts belong to a team, and all its factories hear of them. */
export const onDeliveryEvents = ({ hasListener, listeningFactories, enqueueDecision }: OnDeliveryEventsDeps): EventHandlers => ({
  async "millwright.delivery.accepted.v1"(tx, event) {
    const delivered = deliveredBy(event);
    if (await hasListener(tx, delivered.factoryUid, delivered.provider)) await enqueueDecision(tx, delivered);
  },
  async "millwright.code_host_delivery.accepted.v1"(tx, { entityUid, teamUid = "", requestId, occurredAt, payload }) {
    const { provider, event, code_host_uid, delivery_id, size_bytes } = payload as { provider: string; event: string; code_host_uid: string; delivery_id: string; size_bytes: number };
    for (const factoryUid of await listeningFactories(tx, teamUid, provider)) {
      const subject = { code_host_uid, delivery_id, size_bytes };
      await enqueueDecision(tx, { uid: entityUid, factoryUid, teamUid, provider, event, deliveryUid: entityUid, requestId, occurredAt: occurredAt.toISOString(), subject });
    }
  },
});

function deliveredBy({ entityUid, teamUid = "", requestId, occurredAt, payload }: StoredEvent): TriggerEvent {
  const { factory_uid: factoryUid, webhook_uid, delivery_id, size_bytes } = payload as { factory_uid: string; webhook_uid: string; delivery_id: string; size_bytes: number };
  return {
    uid: entityUid, factoryUid, teamUid, provider: "webhook", event: "received", deliveryUid: entityUid, requestId, occurredAt: occurredAt.toISOString(),
    subject: { webhook_uid, delivery_id, size_bytes },
  };
}
