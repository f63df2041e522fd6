import { z } from "zod";
import type { webhooks as proto } from "@millwright/contracts";
import { isDomainError } from "@millwright/errors";
import { cursor, PageInfo, pageInfo, pageLimit, Reply, route, type Route } from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { WEBHOOK_PATHS } from "./webhook-paths.ts";
import { Delivery, deliveryRecord, DeliveryWithPayload } from "./webhook-schemas.ts";

/** Returns the routes of the delivery log of webhooks, at both path forms of a webhook. */
export function webhookDeliveryRoutes({ webhooks, automations }: Pick<Upstreams, "webhooks" | "automations">): Route[] {
  /** Returns the runs that accepted deliveries of one factory have started; none if the caller may not view the factory. */
  const runsOf = async (deliveries: readonly proto.Delivery[], input: Parameters<typeof onBehalf>[0]) => {
    const eventUids = deliveries.flatMap(({ uid, outcome }) => (outcome === "accepted" ? [uid] : []));
    if (eventUids.length === 0) return [];
    const factoryUid = deliveries[0]!.factoryUid;
    const answer = await automations
      .listEventRuns({ factoryUid, eventUids }, onBehalf(input))
      .catch((error: unknown) => {
        if (isDomainError(error) && ["permission_denied", "not_found"].includes(error.kind)) return { runs: [] };
        throw error;
      });
    return answer.runs;
  };
  const common = { verbs: ["webhook.manage"] as const, errors: [403], method: "GET" as const, extension: true };
  return WEBHOOK_PATHS.flatMap(({ path, params, withDelivery, ref }) => [
    route({
      ...common,
      path: `${path}/deliveries`,
      summary: "List the deliveries of a webhook, newest first",
      params,
      query: z.object({ limit: pageLimit(50), cursor: cursor() }),
      response: z.object({ deliveries: z.array(Delivery), page_info: PageInfo }),
      handler: async (input) => {
        const page = await webhooks.listDeliveries(
          { ...ref(input.params), pageSize: input.query.limit, pageToken: input.query.cursor ?? "" },
          onBehalf(input),
        );
        const runs = await runsOf(page.deliveries, input);
        return {
          deliveries: page.deliveries.map((entry) => deliveryRecord(entry, runs)),
          page_info: pageInfo(page.nextPageToken),
        };
      },
    }),
    route({
      ...common,
      path: `${path}/deliveries/{deliveryUid}`,
      summary: "Read a delivery with its payload",
      params: withDelivery,
      response: DeliveryWithPayload,
      handler: async (input) => {
        const uids = input.params as Readonly<Record<string, string>>;
        const { delivery: found, payload } = await webhooks.getDelivery(
          { ...ref(uids), deliveryUid: uids["deliveryUid"]! },
          onBehalf(input),
        );
        return withPayload(deliveryRecord(found!, await runsOf([found!], input)), payload);
      },
    }),
  ]);
}

/**
 * Returns the record with the stored payload bytes as its last member. The bytes are not parsed, because parsing would
 * change numbers and drop repeated keys.
 */
export function withPayload(record: object, payload: Uint8Array | undefined): Reply {
  const text = JSON.stringify(record);
  return new Reply(200, payload ? `${text.slice(0, -1)},"payload":${Buffer.from(payload).toString("utf8")}}` : text, {
    "content-type": "application/json; charset=utf-8",
  });
}
