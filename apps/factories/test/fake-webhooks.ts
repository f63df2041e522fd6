import type { JsonObject } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { definitions, events, webhooks } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { allowServices } from "@millwright/rpc";
import { FakeOwner } from "./fake-owner.ts";

export type FakeDelivery = {
  uid: string;
  factoryUid: string;
  teamUid: string;
  webhookUid: string;
  webhookName: string;
  deliveryId: string;
  payload: Buffer | undefined;
};

const AT = new Date("2026-11-20T09:59:00.000Z");

/** Deliveries in memory, and the feed of their events. */
export class FakeWebhooks {
  static readonly allow = {
    ...allowServices(events.EventFeedService, { read: ["factories"] }),
    ...allowServices(webhooks.WebhookService, { getDelivery: ["factories"] }),
    ...allowServices(webhooks.CodeHostWebhookService, { getCodeHostDelivery: ["factories"] }),
    ...allowServices(definitions.DefinitionOwnerService, {
      stageDefinition: ["factories"],
      discardDefinition: ["factories"],
      activateDefinition: ["factories"],
    }),
  };
  readonly owner = new FakeOwner("nothing");
  readonly deliveries: FakeDelivery[] = [];
  readonly codeHostDeliveries: {
    uid: string;
    teamUid: string;
    codeHostUid: string;
    provider: string;
    headers: Record<string, string>;
    body: Buffer | undefined;
  }[] = [];
  /** The number of payload reads. */
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
          delivery: {
            ...delivery,
            outcome: payload ? "accepted" : "rejected_auth",
            sizeBytes: BigInt(payload?.length ?? 0),
            receivedAt: timestampFromDate(AT),
          },
          webhookName,
          payload: payload && new Uint8Array(payload),
        };
      },
    });
    router.service(webhooks.CodeHostWebhookService, {
      getCodeHostDelivery: async ({ deliveryUid }) => {
        const found = this.codeHostDeliveries.find(({ uid }) => uid === deliveryUid);
        if (!found) throw notFound("delivery");
        const { body, headers, ...delivery } = found;
        return {
          delivery: {
            ...delivery,
            deliveryId: `d-${found.uid}`,
            sizeBytes: BigInt(body?.length ?? 0),
            receivedAt: timestampFromDate(AT),
          },
          body: body && new Uint8Array(body),
          headers,
          botLogin: "millwright[bot]",
        };
      },
    });
    router.service(events.EventFeedService, {
      read: async ({ after, limit }) => ({
        logUid: "0199a000-0000-7000-8000-000000000001",
        head: BigInt(this.#feed.length),
        events: this.#feed.slice(Number(after), Number(after) + limit).map((event, index) => ({
          ...event,
          uid: newUid(),
          position: after + BigInt(index) + 1n,
          entity: event.type.split(".")[1]!,
          entityVersion: 1n,
          actorType: "webhook",
          actorUid: "w",
          requestId: "r-1",
          occurredAt: timestampFromDate(AT),
        })),
      }),
    });
  }

  readonly #feed: { type: string; entityUid: string; teamUid: string; payload: JsonObject }[] = [];

  /** Adds an accepted delivery of a code host and appends its event. */
  acceptFromCodeHost(teamUid: string, provider: string, headers: Record<string, string>, body: unknown): string {
    const [uid, codeHostUid, bytes] = [newUid(), newUid(), Buffer.from(JSON.stringify(body))];
    this.codeHostDeliveries.push({ uid, teamUid, codeHostUid, provider, headers, body: bytes });
    const payload = {
      code_host_uid: codeHostUid,
      provider,
      event: headers["x-github-event"] ?? headers["x-gitlab-event"] ?? "Hook",
      delivery_id: `d-${uid}`,
      size_bytes: bytes.length,
    };
    this.#feed.push({ type: "millwright.code_host_delivery.accepted.v1", entityUid: uid, teamUid, payload });
    return uid;
  }

  /** Adds an accepted delivery and appends its event. */
  accept(
    given: Pick<FakeDelivery, "factoryUid" | "teamUid" | "webhookUid"> & Partial<Omit<FakeDelivery, "payload">>,
    body: unknown,
  ): FakeDelivery {
    const delivery = {
      uid: newUid(),
      webhookName: "ci",
      deliveryId: `evt-${this.deliveries.length + 1}`,
      payload: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
      ...given,
    };
    this.deliveries.push(delivery);
    const payload = {
      webhook_uid: delivery.webhookUid,
      factory_uid: delivery.factoryUid,
      delivery_id: delivery.deliveryId,
      size_bytes: delivery.payload.length,
    };
    this.#feed.push({
      type: "millwright.delivery.accepted.v1",
      entityUid: delivery.uid,
      teamUid: delivery.teamUid,
      payload,
    });
    return delivery;
  }
}
