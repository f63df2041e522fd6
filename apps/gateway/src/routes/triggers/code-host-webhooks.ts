import { z } from "zod";
import { jsonBytes } from "@millwright/code-host-events";
import type { orchestrator, webhooks } from "@millwright/contracts";
import { DomainError } from "@millwright/errors";
import {
  cursor,
  PageInfo,
  pageInfo,
  pageLimit,
  pathUid,
  route,
  timestamp,
  uuid,
  type Route,
} from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { Replay, Replayed, replayRecord } from "./automation-schemas.ts";
import { findCodeHost, type CodeHostInput } from "../catalog/code-hosts.ts";
import { isoTime } from "../formats/json-values.ts";
import { LABELS, type DeliveryOutcome } from "./webhook-schemas.ts";
import { withPayload } from "./webhook-deliveries.ts";

const CodeHostWebhook = z
  .object({
    code_host_uid: z.string(),
    provider: z.enum(["github", "gitlab"]),
    ingress_url: z.string().meta({ description: "URL to which the code host sends webhooks." }),
    enabled: z.boolean(),
    bot_login: z.string().nullable().meta({
      description:
        "The platform's account at the code host. Its actions trigger no automations. At GitLab, a mention of it triggers bot_mentioned.",
    }),
    created_at: timestamp(),
    updated_at: timestamp(),
    last_delivery_at: timestamp().nullable(),
  })
  .meta({ id: "CodeHostWebhook" });

const WithSecret = CodeHostWebhook.extend({
  secret: z.string().optional().meta({ description: "Returned only in the response that generates it." }),
}).meta({ id: "CodeHostWebhookWithSecret" });

const Delivery = z
  .object({
    uid: z.string(),
    code_host_uid: z.string(),
    provider: z.enum(["github", "gitlab"]),
    event: z
      .string()
      .nullable()
      .meta({ description: "Event name in the header, such as pull_request or Merge Request Hook." }),
    action: z.string().nullable().meta({ description: "Action in the payload, such as opened." }),
    delivery_id: z
      .string()
      .nullable()
      .meta({ description: "Delivery id returned to the code host. null if the delivery was rejected." }),
    label: z.enum(Object.values(LABELS) as ["Accepted"]),
    outcome: z.enum(Object.keys(LABELS) as ["accepted"]),
    size_bytes: z.int(),
    received_at: timestamp(),
  })
  .meta({ id: "CodeHostDelivery" });

const WithPayload = Delivery.extend({
  headers: z
    .record(z.string(), z.string())
    .meta({ description: "Headers that identify the event. Credentials are not stored." }),
  payload: z
    .unknown()
    .optional()
    .meta({ description: "The body as received (for a form, the JSON in it). Only for accepted deliveries." }),
}).meta({ id: "CodeHostDeliveryWithPayload" });

/**
 * Returns the routes of the endpoint that receives a code host's webhooks, and of its delivery log. Millwright
 * extension.
 */
export function codeHostWebhookRoutes(
  upstreams: Pick<Upstreams, "automations" | "catalog" | "codeHostWebhooks">,
): Route[] {
  const { automations, codeHostWebhooks } = upstreams;
  const of = "/team/{uid}/code-hosts/{codeHostUid}/webhook";
  const params = z.object({ uid: pathUid("team"), codeHostUid: pathUid("code_host") });
  const common = { verbs: ["factory.manage"] as const, errors: [403], params };
  const refOf = (host: orchestrator.CodeHost) => ({ teamUid: host.teamUid, codeHostUid: host.uid });
  const find = async (input: CodeHostInput) => refOf(await findCodeHost(upstreams, input));
  return [
    route({
      ...common,
      method: "GET",
      path: of,
      extension: true,
      summary: "Read the webhook endpoint of a code host",
      response: CodeHostWebhook,
      handler: async (input) =>
        webhookRecord((await codeHostWebhooks.getCodeHostWebhook(await find(input), onBehalf(input))).webhook!),
    }),
    route({
      ...common,
      method: "PUT",
      path: of,
      extension: true,
      summary: "Create or update the webhook endpoint of a code host",
      description:
        "Absent members are unchanged. Creating the endpoint generates a secret, which only this response contains. Configure it at the code host as the webhook's secret (GitLab: secret token or signing token).",
      errors: [403, 422],
      response: WithSecret,
      body: z
        .object({ enabled: z.boolean().optional(), bot_login: z.string().max(300).nullable().optional() })
        .optional(),
      handler: async (input) => {
        const host = await findCodeHost(upstreams, input);
        if (host.kind === "local")
          throw new DomainError({
            kind: "unsupported",
            reason: "code_host_sends_nothing",
            message: "Local repositories send no webhooks. Use a connection to a code host.",
          });
        const { webhook, secret } = await codeHostWebhooks.putCodeHostWebhook(
          { ...refOf(host), provider: host.kind, ...settingsOf(input.body) },
          onBehalf(input),
        );
        return { ...webhookRecord(webhook!), secret: secret || undefined };
      },
    }),
    route({
      ...common,
      method: "DELETE",
      path: of,
      extension: true,
      summary: "Delete the webhook endpoint of a code host",
      description: "Later deliveries get 404.",
      status: 204,
      handler: async (input) => void (await codeHostWebhooks.deleteCodeHostWebhook(await find(input), onBehalf(input))),
    }),
    route({
      ...common,
      method: "POST",
      path: `${of}/rotate`,
      extension: true,
      summary: "Rotate the webhook secret of a code host",
      description: "Generates a secret unless the request contains one. It replaces the previous secret immediately.",
      body: z.object({ secret: z.string().min(1).max(4096).optional() }).optional(),
      response: WithSecret,
      handler: async (input) => {
        const { webhook, secret } = await codeHostWebhooks.rotateCodeHostSecret(
          { ...(await find(input)), secret: input.body?.secret ?? "" },
          onBehalf(input),
        );
        return { ...webhookRecord(webhook!), secret: secret || undefined };
      },
    }),
    route({
      ...common,
      method: "GET",
      path: `${of}/deliveries`,
      extension: true,
      summary: "List the deliveries of a code host, newest first",
      query: z.object({ limit: pageLimit(50), cursor: cursor() }),
      response: z.object({ deliveries: z.array(Delivery), page_info: PageInfo }),
      handler: async (input) => {
        const page = await codeHostWebhooks.listCodeHostDeliveries(
          { ...(await find(input)), pageSize: input.query.limit, pageToken: input.query.cursor ?? "" },
          onBehalf(input),
        );
        return { deliveries: page.deliveries.map(deliveryRecord), page_info: pageInfo(page.nextPageToken) };
      },
    }),
    route({
      ...common,
      method: "GET",
      path: `${of}/deliveries/{deliveryUid}`,
      extension: true,
      summary: "Read a delivery of a code host with its payload",
      params: params.extend({ deliveryUid: pathUid("delivery") }),
      response: WithPayload,
      handler: async (input) => {
        const { delivery, headers, body } = await codeHostWebhooks.getCodeHostDelivery(
          { ...(await find(input)), deliveryUid: input.params.deliveryUid },
          onBehalf(input),
        );
        return withPayload({ ...deliveryRecord(delivery!), headers }, body && jsonBytes({ headers, body }));
      },
    }),
    route({
      method: "POST",
      path: `${of}/deliveries/{deliveryUid}/replay`,
      extension: true,
      summary: "Evaluate an automation for a delivery of a code host again",
      description:
        "Uses the current automation, which can belong to any factory of the team, and the stored delivery. A match starts another run, or continues the task bound to the item, unless `dry_run` is true. The audit log records both.",
      verbs: ["factory.manage", "run.create"],
      errors: [403, 409],
      idempotent: true,
      storesResponse: true,
      params: params.extend({ deliveryUid: pathUid("delivery") }),
      body: Replay.extend({ factory_uid: uuid().meta({ description: "Factory of the automation." }) }),
      response: Replayed,
      handler: async (input) => {
        const { codeHostUid } = await find(input);
        const { factory_uid: factoryUid, automation_uid: automationUid, dry_run: dryRun = false } = input.body;
        const upstreamRequest = {
          codeHostUid,
          deliveryUid: input.params.deliveryUid,
          factoryUid,
          automationUid,
          dryRun,
          idempotencyKey: input.request.idempotency?.key ?? "",
        };
        const { wouldTrigger, decision } = await automations.replayDelivery(upstreamRequest, onBehalf(input));
        return replayRecord(wouldTrigger, decision!);
      },
    }),
  ];
}

const settingsOf = ({
  enabled,
  bot_login: botLogin,
}: { enabled?: boolean | undefined; bot_login?: string | null | undefined } = {}) => ({
  enabled,
  botLogin: botLogin === null ? "" : botLogin,
});

const webhookRecord = (webhook: webhooks.CodeHostWebhook): z.input<typeof CodeHostWebhook> => ({
  code_host_uid: webhook.codeHostUid,
  provider: webhook.provider as "github",
  ingress_url: webhook.ingressUrl,
  enabled: webhook.enabled,
  bot_login: webhook.botLogin || null,
  created_at: isoTime(webhook.createdAt!),
  updated_at: isoTime(webhook.updatedAt!),
  last_delivery_at: webhook.lastDeliveryAt ? isoTime(webhook.lastDeliveryAt) : null,
});

const deliveryRecord = (delivery: webhooks.CodeHostDelivery): z.input<typeof Delivery> => ({
  uid: delivery.uid,
  code_host_uid: delivery.codeHostUid,
  provider: delivery.provider as "github",
  event: delivery.event || null,
  action: delivery.action || null,
  delivery_id: delivery.deliveryId || null,
  label: LABELS[delivery.outcome as DeliveryOutcome] as "Accepted",
  outcome: delivery.outcome as "accepted",
  size_bytes: Number(delivery.sizeBytes),
  received_at: isoTime(delivery.receivedAt!),
});
