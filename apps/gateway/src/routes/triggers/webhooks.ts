import { z } from "zod";
import { PageInfo, pageInfo, route, type Route, type RouteInput } from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { factoryMember, factoryParam, WEBHOOK_PATHS } from "./webhook-paths.ts";
import { NewWebhook, Webhook, webhookRecord, WebhookSettings, WebhookWithSecret } from "./webhook-schemas.ts";

type Caller = Parameters<typeof onBehalf>[0];

/**
 * Returns the routes of webhooks. Each has two paths: below the factory, and the published path without the factory.
 */
export function webhookRoutes({ webhooks }: Pick<Upstreams, "webhooks">): Route[] {
  const common = { verbs: ["webhook.manage"] as const, errors: [403] };
  const change = { ...common, errors: [403, 409] };
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
    const { webhook: created, secret } = await webhooks.createWebhook(
      { webhook: newWebhook, secret: body.secret ?? "", idempotencyKey: input.request.idempotency?.key ?? "" },
      onBehalf(input),
    );
    return { ...webhookRecord(created!), secret: secret || undefined };
  };
  const listed = z.object({ webhooks: z.array(Webhook), page_info: PageInfo });
  const creation = {
    ...change,
    method: "POST",
    extension: true,
    summary: "Create a webhook",
    idempotent: true,
    status: 201,
    response: WebhookWithSecret,
  } as const;
  return [
    route({
      ...common,
      method: "GET",
      path: "/factory/{uid}/webhooks",
      extension: true,
      summary: "List a factory's webhooks",
      params: z.object(factoryParam),
      response: listed,
      handler: (input) => list(input.params.uid, input),
    }),
    route({
      ...common,
      method: "GET",
      path: "/factory/webhooks",
      extension: true,
      summary: "List a factory's webhooks",
      query: z.object(factoryMember),
      response: listed,
      errors: [403, 404],
      handler: (input) => list(input.query.factory_uid, input),
    }),
    route({
      ...creation,
      path: "/factory/{uid}/webhooks",
      params: z.object(factoryParam),
      body: NewWebhook,
      handler: (input) => create(input.params.uid, input.body, input),
    }),
    route({
      ...creation,
      path: "/factory/webhooks",
      body: NewWebhook.extend(factoryMember),
      errors: [403, 404, 409],
      handler: (input) => create(input.body.factory_uid, input.body, input),
    }),
    ...WEBHOOK_PATHS.flatMap(({ path, params, ref }) => [
      route({
        ...common,
        method: "GET",
        path,
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
        path,
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
        path,
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
        path: `${path}/rotate`,
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
    ]),
  ];
}
