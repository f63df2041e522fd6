import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { definitions, events, webhooks } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { allowServices } from "@millwright/rpc";
import { FakeOwner } from "./fake-owner.ts";

export type FakeDelivery = { uid: string; factoryUid: string; teamUid: string; webhookUid: string; webhookName: string; deliveryId: string; payload: Buffer | undefined };

const AT = new Date("2026-11-20T09:59:00.000Z");

/** Deliveries in memory, and the feed that tells of them. */
export class FakeWebhooks {
  static readonly allow = {
    ...allowServices(events.EventFeedService, { read: ["factories"] }),
    ...allowServices(webhooks.WebhookService, { getDelivery: ["factories"] }),
    ...allowServices(definitions.DefinitionOwnerService, { stageDefinition: ["factories"], dropDefinition: ["factories"], activateDefinition: ["factories"] }),
  };
  readonly owner = new FakeOwner("nothing");
  readonly deliveries: FakeDelivery[] = [];
  /** How often a payload was asked for. */
  reads = 0;
  /** Thrown by the next reads. */
  failure: Error | undefined;

  routes(router: ConnectRouter): void {
    router.service(definitions.DefinitionOwnerService, this.owner.service());
    router.service(webhooks.WebhookService, {
      getDelivery: async ({ deliveryUid }) => {
        this.reads += 1;
        if (this.failure) throw this.failure;
        const found = this.deliveries.find(({ uid }) => uid === deliveryUid);
        if (!found) throw notFound("delivery");
        const { payload, webhookName, ...delivery } = found;
        return {
          delivery: { ...delivery, outcome: payload ? "accepted" : "rejected_auth", sizeBytes: BigInt(payload?.length ?? 0), receivedAt: timestampFromDate(AT) }, webhookName,
          ...(payload && { payload: new Uint8Array(payload) }),
        };
      },
    });
    router.service(events.EventFeedService, {
      read: async ({ after, limit }) => {
        const accepted = this.deliveries.filter(({ payload }) => payload !== undefined);
        return {
          logUid: "0199a000-0000-7000-8000-000000000001",
          head: BigInt(accepted.length),
          events: accepted.slice(Number(after), Number(after) + limit).map(({ uid, teamUid, factoryUid, webhookUid, deliveryId, payload }, index) => ({
            uid: newUid(), position: after + BigInt(index) + 1n, type: "millwright.delivery.accepted.v1", entity: "delivery", entityUid: uid, entityVersion: 1n, teamUid, actorType: "webhook", actorUid: webhookUid,
            requestId: "r-1", occurredAt: timestampFromDate(AT), payload: { webhook_uid: webhookUid, factory_uid: factoryUid, delivery_id: deliveryId, size_bytes: payload!.length },
          })),
        };
      },
    });
  }

  /** An accepted delivery, and the event that says so. */
  accept(given: Pick<FakeDelivery, "factoryUid" | "teamUid" | "webhookUid"> & Partial<FakeDelivery>, body: unknown): FakeDelivery {
    const delivery = { uid: newUid(), webhookName: "ci", deliveryId: `evt-${this.deliveries.length + 1}`, payload: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)), ...given };
    this.deliveries.push(delivery);
    return delivery;
  }
}
