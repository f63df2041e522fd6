import { z } from "zod";
import type { webhooks as proto } from "@millwright/contracts";
import {
  cursor,
  PageInfo,
  pageInfo,
  pageLimit,
  pathUid,
  Reply,
  route,
  uuid,
  type Route,
  type RouteInput,
} from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import {
  Delivery,
  deliveryRecord,
  DeliveryWithPayload,
  NewWebhook,
  Webhook,
  webhookRecord,
  WebhookSettings,
  WebhookWithSecret,
} from "./webhook-schemas.ts";

/** A test can contain a payload of the maximum delivery size, and JSON within JSON is longer. */
const TEST_BODY_BYTES_MAX = 2 * 1024 * 1024;

const factory = { uid: pathUid("factory") };
const webhook = { webhookUid: pathUid("webhook") };
const delivery = { deliveryUid: pathUid("delivery") };
/** Published paths (`/factory/webhooks/{uid}`) do not contain the factory. */
const alone = { uid: pathUid("webhook") };
const inBody = { factory_uid: uuid() };

const FilterTest = z.object({
  webhook_ids: z.array(uuid()).min(1).max(100).meta({ description: "Webhooks that the trigger selects." }),
  payload_filter: z.unknown().optional(),
  delivery_uid: uuid().optional().meta({ description: "Uid of a stored delivery. Alternative to `payload`." }),
  payload: z.unknown().optional().meta({ description: "A payload. Alternative to `delivery_uid`." }),
});
const Check = z.object({ passed: z.boolean(), detail: z.string() });
const TestedFilter = z
  .object({
    would_trigger: z.boolean(),
    label: z.enum(["Would trigger", "Would not trigger"]),
    checks: z.object({ webhook: Check, payload: Check.extend({ failed_paths: z.array(z.string()) }) }),
  })
  .meta({ id: "TestedFilter" });

type Ref = { readonly factoryUid: string; readonly webhookUid: string };
type Uids = Readonly<Record<string, string>>;
type Caller = Parameters<typeof onBehalf>[0];

/**
 * Returns the routes of webhooks, their delivery log and filter tests. Each route has two paths: below the factory, and
 * the published path without the factory.
 */
export function webhookRoutes({ webhooks, automations }: Pick<Upstreams, "webhooks" | "automations">): Route[] {
  /** Returns the runs that accepted deliveries of one factory have started. */
  const runsOf = async (deliveries: readonly proto.Delivery[], input: Caller) => {
    const eventUids = deliveries.flatMap(({ uid, outcome }) => (outcome === "accepted" ? [uid] : []));
    return eventUids.length === 0
      ? []
      : (await automations.listEventRuns({ factoryUid: deliveries[0]!.factoryUid, eventUids }, onBehalf(input))).runs;
  };
  const common = { verbs: ["webhook.manage"] as const, errors: [403] };
  const change = { ...common, errors: [403, 409] };
  /** Both path forms of a webhook, with their parameters and the reference that the parameters identify. */
  const spellings = [
    {
      of: "/factory/{uid}/webhooks/{webhookUid}",
      params: z.object({ ...factory, ...webhook }),
      withDelivery: z.object({ ...factory, ...webhook, ...delivery }),
      ref: ({ uid, webhookUid }: Uids): Ref => ({ factoryUid: uid!, webhookUid: webhookUid! }),
    },
    {
      of: "/factory/webhooks/{uid}",
      params: z.object(alone),
      withDelivery: z.object({ ...alone, ...delivery }),
      ref: ({ uid }: Uids): Ref => ({ factoryUid: "", webhookUid: uid! }),
    },
  ];
  const list = async (factoryUid: string, input: Caller) => {
    const { webhooks: found } = await webhooks.listWebhooks({ factoryUid }, onBehalf(input));
    return { webhooks: found.map(webhookRecord), page_info: pageInfo(undefined) };
  };
  const create = async (factoryUid: string, body: z.output<typeof NewWebhook>, input: RouteInput & Caller) => {
    const newWebhook = {
      factoryUid,
      name: body.name,
      authMode: body.auth_mode ?? "",
      signatureScheme: body.signature_scheme ?? "",
      signatureHeader: body.signature_header ?? "",
      signaturePrefix: body.signature_prefix ?? "",
      secretName: body.secret_name ?? "",
      deliveryIdHeader: body.delivery_id_header ?? "",
      enabled: body.enabled ?? true,
    };
    const { webhook: made, secret } = await webhooks.createWebhook(
      { webhook: newWebhook, secret: body.secret ?? "", idempotencyKey: input.request.idempotency?.key ?? "" },
      onBehalf(input),
    );
    return { ...webhookRecord(made!), secret: secret || undefined };
  };
  const test = async (factoryUid: string, body: z.output<typeof FilterTest>, input: Caller) => {
    const tested = await webhooks.testFilter(
      {
        factoryUid,
        webhookUids: body.webhook_ids,
        deliveryUid: body.delivery_uid ?? "",
        payloadFilter: body.payload_filter === undefined ? "" : JSON.stringify(body.payload_filter),
        ...("payload" in body && body.payload !== undefined && { payload: Buffer.from(JSON.stringify(body.payload)) }),
      },
      onBehalf(input),
    );
    const checks = {
      webhook: shown(tested.webhook),
      payload: { ...shown(tested.payload), failed_paths: tested.failedPaths },
    };
    return {
      would_trigger: tested.wouldTrigger,
      label: tested.wouldTrigger ? ("Would trigger" as const) : ("Would not trigger" as const),
      checks,
    };
  };
  const listed = z.object({ webhooks: z.array(Webhook), page_info: PageInfo });
  const making = {
    ...change,
    method: "POST",
    extension: true,
    summary: "Create a webhook",
    idempotent: true,
    status: 201,
    response: WebhookWithSecret,
  } as const;
  const testing = {
    ...common,
    method: "POST",
    extension: true,
    summary: "Test a filter of a webhook trigger",
    description:
      "Returns whether a trigger with these webhooks and this filter would match a stored delivery or a payload. Starts and stores nothing.",
    bodyBytesMax: TEST_BODY_BYTES_MAX,
    exactNumbers: true,
    response: TestedFilter,
  } as const;
  return [
    route({
      ...common,
      method: "GET",
      path: "/factory/{uid}/webhooks",
      extension: true,
      summary: "List a factory's webhooks",
      params: z.object(factory),
      response: listed,
      handler: (input) => list(input.params.uid, input),
    }),
    route({
      ...common,
      method: "GET",
      path: "/factory/webhooks",
      extension: true,
      summary: "List a factory's webhooks",
      query: z.object(inBody),
      response: listed,
      errors: [403, 404],
      handler: (input) => list(input.query.factory_uid, input),
    }),
    route({
      ...making,
      path: "/factory/{uid}/webhooks",
      params: z.object(factory),
      body: NewWebhook,
      handler: (input) => create(input.params.uid, input.body, input),
    }),
    route({
      ...making,
      path: "/factory/webhooks",
      body: NewWebhook.extend(inBody),
      errors: [403, 404, 409],
      handler: (input) => create(input.body.factory_uid, input.body, input),
    }),
    route({
      ...testing,
      path: "/factory/{uid}/webhooks/test-filter",
      params: z.object(factory),
      body: FilterTest,
      handler: (input) => test(input.params.uid, input.body, input),
    }),
    route({
      ...testing,
      path: "/factory/webhooks/dry-run",
      body: FilterTest.extend(inBody),
      errors: [403, 404],
      handler: (input) => test(input.body.factory_uid, input.body, input),
    }),
    ...spellings.flatMap(({ of, params, withDelivery, ref }) => [
      route({
        ...common,
        method: "GET",
        path: of,
        extension: true,
        summary: "Read a webhook",
        params,
        response: Webhook,
        handler: async (input) =>
          webhookRecord((await webhooks.getWebhook(ref(input.params), onBehalf(input))).webhook!),
      }),
      route({
        ...change,
        method: "PUT",
        path: of,
        extension: true,
        summary: "Replace a webhook's name, delivery-id header and enabled state",
        description:
          "The authentication mode is immutable. For webhooks defined by files, only `enabled` can be changed, or nothing if the files are in a repository of the team.",
        params,
        body: WebhookSettings,
        response: Webhook,
        handler: async (input) => {
          const { name, delivery_id_header: header, enabled } = input.body;
          return webhookRecord(
            (
              await webhooks.replaceWebhook(
                { ...ref(input.params), name, deliveryIdHeader: header ?? "", enabled },
                onBehalf(input),
              )
            ).webhook!,
          );
        },
      }),
      route({
        ...change,
        method: "DELETE",
        path: of,
        extension: true,
        summary: "Delete a webhook",
        description: "Later deliveries get 404.",
        status: 204,
        params,
        handler: async (input) => void (await webhooks.deleteWebhook(ref(input.params), onBehalf(input))),
      }),
      route({
        ...change,
        method: "POST",
        path: `${of}/rotate`,
        extension: true,
        summary: "Rotate a webhook's secret",
        description:
          "Generates a secret unless the request contains the provider's. It replaces the previous secret immediately. A webhook that was disabled for lack of a secret is enabled.",
        params,
        body: z.object({ secret: z.string().min(1).max(4096).optional() }).optional(),
        response: WebhookWithSecret,
        handler: async (input) => {
          const { webhook: changed, secret } = await webhooks.rotateSecret(
            { ...ref(input.params), secret: input.body?.secret ?? "" },
            onBehalf(input),
          );
          return { ...webhookRecord(changed!), secret: secret || undefined };
        },
      }),
      route({
        ...common,
        method: "GET",
        path: `${of}/deliveries`,
        extension: true,
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
        method: "GET",
        path: `${of}/deliveries/{deliveryUid}`,
        extension: true,
        summary: "Read a delivery with its payload",
        params: withDelivery,
        response: DeliveryWithPayload,
        handler: async (input) => {
          const uids = input.params as Uids;
          const { delivery: found, payload } = await webhooks.getDelivery(
            { ...ref(uids), deliveryUid: uids["deliveryUid"]! },
            onBehalf(input),
          );
          return withPayload(deliveryRecord(found!, await runsOf([found!], input)), payload);
        },
      }),
    ]),
  ];
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

const shown = (check: { passed: boolean; detail: string } | undefined) => ({
  passed: check?.passed ?? false,
  detail: check?.detail ?? "",
});
