import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { events, webhooks } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { allowServices } from "@millwright/rpc";
import { serveFeed, type FakeEvent } from "@millwright/testing";
import { pageOf } from "./page-of.ts";

/** `event`: as its header names it, such as pull_request. `body`: JSON. */
export type FakeDelivery = {
  uid: string;
  teamUid: string;
  provider: "github" | "gitlab";
  event: string;
  action: string;
  body: unknown;
  receivedAt: Date;
};

const BOT_LOGIN = "millwright[bot]";

/** Deliveries of code hosts in memory, and the feed that reports them. */
export class FakeWebhooks {
  static readonly allow = {
    ...allowServices(events.EventFeedService, { read: ["metrics"] }),
    ...allowServices(webhooks.CodeHostWebhookService, {
      batchGetCodeHostDeliveries: ["metrics"],
      getCodeHostWebhook: ["metrics"],
      walkCodeHostDeliveries: ["metrics"],
    }),
  };
  readonly deliveries = new Map<string, FakeDelivery>();
  readonly feed: FakeEvent[] = [];
  /** Before a delivery is returned; may throw. */
  beforeGet: (uid: string) => Promise<void> | void = () => {};
  /** How many deliveries one response takes. */
  batchMax = Infinity;
  /** The account under which the platform acts at the code host. */
  botLogin = BOT_LOGIN;

  /** Accepts a delivery and publishes its event. Returns its uid. */
  deliver(delivery: Omit<FakeDelivery, "uid">): string {
    const uid = newUid();
    this.deliveries.set(uid, { uid, ...delivery });
    this.publish(uid);
    return uid;
  }

  /** Publishes the event of a delivery once more. */
  publish(uid: string): void {
    const { teamUid, provider, event, receivedAt } = this.#get(uid);
    const payload = { code_host_uid: newUid(), provider, event, delivery_id: `d-${uid}`, size_bytes: 100 };
    this.feed.push({
      type: "millwright.code_host_delivery.accepted.v1",
      entityUid: uid,
      teamUid,
      occurredAt: receivedAt,
      payload,
    });
  }

  routes(router: ConnectRouter): void {
    router.service(webhooks.CodeHostWebhookService, {
      getCodeHostWebhook: ({ codeHostUid, teamUid }) => ({
        webhook: { codeHostUid, teamUid, provider: "github", botLogin: this.botLogin },
      }),
      batchGetCodeHostDeliveries: async ({ deliveryUids }) => {
        const stored = deliveryUids.filter((uid) => this.deliveries.has(uid));
        const read = stored.slice(0, this.batchMax);
        for (const uid of read) await this.beforeGet(uid);
        return { deliveries: read.map((uid) => this.#stored(uid)), omittedUids: stored.slice(read.length) };
      },
      walkCodeHostDeliveries: ({ pageSize, pageToken }) => {
        const { page, nextPageToken } = pageOf([...this.deliveries.values()], pageSize, pageToken);
        return { deliveries: page.map(({ uid, event }) => ({ uid, event })), nextPageToken };
      },
    });
    serveFeed(router, "0199a000-0000-7000-8000-000000000002", this.feed);
  }

  /** Forgets everything. */
  clear(): void {
    this.deliveries.clear();
    this.feed.length = 0;
    this.beforeGet = () => {};
    this.batchMax = Infinity;
    this.botLogin = BOT_LOGIN;
  }

  #stored(deliveryUid: string): MessageInitShape<typeof webhooks.GetCodeHostDeliveryResponseSchema> {
    const { uid, teamUid, provider, event, action, body, receivedAt } = this.#get(deliveryUid);
    return {
      delivery: {
        ...{ uid, teamUid, provider, event, action, deliveryId: `d-${uid}`, outcome: "accepted" },
        receivedAt: timestampFromDate(receivedAt),
      },
      body: new TextEncoder().encode(JSON.stringify(body)),
      headers: { [provider === "github" ? "x-github-event" : "x-gitlab-event"]: event },
      botLogin: this.botLogin,
    };
  }

  #get(uid: string): FakeDelivery {
    const delivery = this.deliveries.get(uid);
    if (!delivery) throw notFound("delivery");
    return delivery;
  }
}
