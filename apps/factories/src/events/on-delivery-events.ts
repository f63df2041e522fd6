import type { Sql } from "@millwright/database";
import type { EventHandlers, EventsHandlers, StoredEvent } from "@millwright/events";
import type { TriggerEvent } from "../domain/trigger-event.ts";

export type OnDeliveryEventsDeps = {
  hasListener: (tx: Sql, factoryUid: string, provider: string) => Promise<boolean>;
  /** Of some factories those that have one. */
  listeningAmong: (tx: Sql, factoryUids: readonly string[], provider: string) => Promise<ReadonlySet<string>>;
  /** The factories of a team that have one. */
  listeningFactories: (tx: Sql, teamUid: string, provider: string) => Promise<string[]>;
  /** Leaves the decision as work: it reads the payload, which is elsewhere. */
  enqueueDecision: (tx: Sql, event: TriggerEvent) => Promise<unknown>;
  enqueueDecisions: (tx: Sql, all: readonly { event: TriggerEvent; traceparent: string | undefined }[]) => Promise<unknown>;
};

type Deps = Pick<OnDeliveryEventsDeps, "listeningAmong" | "listeningFactories" | "enqueueDecision" | "enqueueDecisions">;

/** Deliveries that webhook-ingress has accepted: automations look at them. Those of code hosts belong to a team, and all its factories hear of them. */
export const onDeliveryEvents = ({ listeningAmong, listeningFactories, enqueueDecision, enqueueDecisions }: Deps): { handlers: EventHandlers; together: EventsHandlers } => ({
  together: {
    async "millwright.delivery.accepted.v1"(tx, events) {
      const delivered = events.map((event) => ({ event: deliveredBy(event), traceparent: event.traceparent }));
      const listening = await listeningAmong(tx, delivered.map(({ event }) => event.factoryUid), "webhook");
      await enqueueDecisions(tx, delivered.filter(({ event }) => listening.has(event.factoryUid)));
    },
  },
  handlers: {
    async "millwright.code_host_delivery.accepted.v1"(tx, { entityUid, teamUid = "", requestId, occurredAt, payload }) {
      const { provider, event, code_host_uid, delivery_id, size_bytes } = payload as { provider: string; event: string; code_host_uid: string; delivery_id: string; size_bytes: number };
      for (const factoryUid of await listeningFactories(tx, teamUid, provider)) {
        const subject = { code_host_uid, delivery_id, size_bytes };
        await enqueueDecision(tx, { uid: entityUid, factoryUid, teamUid, provider, event, deliveryUid: entityUid, requestId, occurredAt: occurredAt.toISOString(), subject });
      }
    },
  },
});

function deliveredBy({ entityUid, teamUid = "", requestId, occurredAt, payload }: StoredEvent): TriggerEvent {
  const { factory_uid: factoryUid, webhook_uid, delivery_id, size_bytes } = payload as { factory_uid: string; webhook_uid: string; delivery_id: string; size_bytes: number };
  return {
    uid: entityUid, factoryUid, teamUid, provider: "webhook", event: "received", deliveryUid: entityUid, requestId, occurredAt: occurredAt.toISOString(),
    subject: { webhook_uid, delivery_id, size_bytes },
  };
}
