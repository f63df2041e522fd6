import { text as readAll } from "node:stream/consumers";
import { table } from "@millwright/terminal";
import { CHOICES } from "../choices.ts";
import { EXIT, textOption, type Command, type Values } from "../command.ts";
import { readJson } from "../files.ts";
import { FACTORY, factoryUid } from "../which-factory.ts";

type Webhook = {
  uid: string;
  name: string;
  auth_mode: string;
  signature_scheme: string | null;
  enabled: boolean;
  secret_set: boolean;
  ingress_url: string;
  delivery_id_header: string | null;
  last_delivery_at: string | null;
  secret?: string;
};
type Delivery = {
  uid: string;
  label: string;
  delivery_id: string | null;
  size_bytes: number;
  received_at: string;
  payload?: unknown;
};
type Tested = {
  would_trigger: boolean;
  label: string;
  checks: { webhook: { detail: string }; payload: { detail: string } };
};

const describe = (hook: Webhook): string =>
  [
    `webhook ${hook.uid} (${hook.name})${hook.enabled ? "" : hook.secret_set ? ", disabled" : ", waits for the provider's secret: webhook rotate"}`,
    `senders POST to ${hook.ingress_url}`,
    ...(hook.secret ? [`secret, shown once: ${hook.secret}`] : []),
  ].join("\n");

/** Changes one setting of a webhook; the others do not change. */
const change = (words: string, summary: string, next: (values: Values) => object): Command => ({
  words,
  args: ["WEBHOOK"],
  summary,
  run: async (cli, [uid], values) => {
    const { name, delivery_id_header, enabled } = await cli.api().get<Webhook>(`/factory/webhooks/${uid}`);
    const changed = await cli.api().request<Webhook>("PUT", `/factory/webhooks/${uid}`, {
      body: { name, delivery_id_header, enabled, ...next(values) },
    });
    cli.show(changed, () => describe(changed));
  },
});

/** Webhooks of factories. */
export const webhookCommands: Command[] = [
  {
    words: "webhook create",
    args: ["NAME"],
    options: {
      ...FACTORY,
      auth: { type: "string", choices: CHOICES.authModes },
      scheme: { type: "string", choices: CHOICES.signatureSchemes },
      "secret-name": { type: "string" },
      "secret-stdin": { type: "boolean" },
      "delivery-id-header": { type: "string" },
    },
    summary:
      "Create a webhook (--auth token, url_token or signature with --scheme); a generated secret is printed once.",
    run: async (cli, [name], values) => {
      const secret = values["secret-stdin"] ? (await readAll(process.stdin)).replace(/\n$/, "") : undefined;
      const body = {
        name,
        auth_mode: textOption(values, "auth"),
        signature_scheme: textOption(values, "scheme"),
        secret_name: textOption(values, "secret-name"),
        delivery_id_header: textOption(values, "delivery-id-header"),
        secret,
      };
      const made = await cli.api().post<Webhook>(`/factory/${await factoryUid(cli, values)}/webhooks`, body);
      cli.show(made, () => describe(made));
    },
  },
  {
    words: "webhook list",
    args: [],
    options: FACTORY,
    summary: "List a factory's webhooks.",
    run: async (cli, _args, values) => {
      const { webhooks } = await cli
        .api()
        .get<{ webhooks: Webhook[] }>(`/factory/${await factoryUid(cli, values)}/webhooks`);
      cli.show(webhooks, () =>
        table(
          ["WEBHOOK", "NAME", "AUTH", "ENABLED", "LAST DELIVERY"],
          webhooks.map((webhook) => [
            webhook.uid,
            webhook.name,
            webhook.signature_scheme ?? webhook.auth_mode,
            webhook.enabled ? "yes" : "no",
            webhook.last_delivery_at ?? "never",
          ]),
        ),
      );
    },
  },
  {
    words: "webhook get",
    args: ["WEBHOOK"],
    summary: "Show a webhook.",
    run: async (cli, [uid]) => {
      const hook = await cli.api().get<Webhook>(`/factory/webhooks/${uid}`);
      cli.show(hook, () => describe(hook));
    },
  },
  change("webhook enable", "Accept deliveries.", () => ({ enabled: true })),
  change("webhook disable", "Return 404 to senders until the webhook is enabled.", () => ({ enabled: false })),
  {
    words: "webhook rotate",
    args: ["WEBHOOK"],
    options: { "secret-stdin": { type: "boolean" } },
    summary: "Replace the secret of a webhook immediately: generated, or with --secret-stdin the provider's own.",
    run: async (cli, [uid], values) => {
      const body = values["secret-stdin"] ? { secret: (await readAll(process.stdin)).replace(/\n$/, "") } : {};
      const hook = await cli.api().post<Webhook>(`/factory/webhooks/${uid}/rotate`, body);
      cli.show(hook, () => describe(hook));
    },
  },
  {
    words: "webhook delete",
    args: ["WEBHOOK"],
    summary: "Delete a webhook; its senders get 404 immediately.",
    run: async (cli, [uid]) => {
      await cli.api().request("DELETE", `/factory/webhooks/${uid}`);
      cli.show({ uid, deleted: true }, () => `webhook ${uid} is deleted.`);
    },
  },
  {
    words: "webhook deliveries",
    args: ["WEBHOOK"],
    summary: "List the deliveries of a webhook, newest first.",
    run: async (cli, [uid]) => {
      const { deliveries } = await cli.api().get<{ deliveries: Delivery[] }>(`/factory/webhooks/${uid}/deliveries`);
      cli.show(deliveries, () =>
        table(
          ["DELIVERY", "RECEIVED", "OUTCOME", "BYTES", "DELIVERY ID"],
          deliveries.map((delivery) => [
            delivery.uid,
            delivery.received_at,
            delivery.label,
            String(delivery.size_bytes),
            delivery.delivery_id ?? "",
          ]),
        ),
      );
    },
  },
  {
    words: "webhook delivery",
    args: ["WEBHOOK", "DELIVERY"],
    summary: "Show one delivery with its payload.",
    run: async (cli, [uid, deliveryUid]) => {
      const delivery = await cli.api().get<Delivery>(`/factory/webhooks/${uid}/deliveries/${deliveryUid}`);
      cli.show(
        delivery,
        () =>
          `${delivery.label}  ${delivery.received_at}  ${delivery.delivery_id ?? ""}\n${delivery.payload === undefined ? "" : JSON.stringify(delivery.payload, null, 2)}`,
      );
    },
  },
  {
    words: "webhook test",
    args: ["WEBHOOK", "DELIVERY", "[FILTER_FILE]"],
    options: FACTORY,
    summary: "Test whether a filter (a JSON file) matches a stored delivery; exit code 1 if not.",
    run: async (cli, [uid, delivery, file], values) => {
      const filter = file === undefined ? undefined : await readJson(file);
      const tested = await cli.api().post<Tested>(`/factory/${await factoryUid(cli, values)}/webhooks/test-filter`, {
        webhook_ids: [uid],
        delivery_uid: delivery,
        payload_filter: filter,
      });
      cli.show(tested, () => [tested.label, tested.checks.webhook.detail, tested.checks.payload.detail].join("\n"));
      return tested.would_trigger ? EXIT.done : EXIT.failed;
    },
  },
];
