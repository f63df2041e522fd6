import { z } from "zod";
import type { factories, webhooks } from "@millwright/contracts";
import { EXTENSION, timestamp } from "../../rest/index.ts";
import { isoTime } from "../formats/json-values.ts";

export const AuthMode = z.enum(["token", "url_token", "signature"]);
/** Signature schemes: first those of the published API, then Millwright extensions. */
export const SignatureScheme = z.enum([
  "github",
  "pagerduty",
  "sentry",
  "standard_webhooks",
  "stripe",
  "vercel",
  "slack",
  "linear",
  "shopify",
  "gitlab",
  "generic_hmac_sha256",
]);

/** A webhook of a factory. `signature_header` and `signature_prefix` are Millwright extensions. */
export const Webhook = z
  .object({
    uid: z.string(),
    factory_uid: z.string(),
    name: z.string(),
    auth_mode: AuthMode,
    signature_scheme: SignatureScheme.nullable(),
    signature_header: z
      .string()
      .nullable()
      .meta({
        ...EXTENSION,
        description: "For generic_hmac_sha256: the header with the hexadecimal signature.",
      }),
    signature_prefix: z
      .string()
      .nullable()
      .meta({ ...EXTENSION, description: "For generic_hmac_sha256: the prefix of the signature." }),
    secret_name: z.string().nullable(),
    secret_set: z.boolean().meta({ description: "false: the provider's secret has not been set." }),
    delivery_id_header: z.string().nullable(),
    enabled: z.boolean(),
    ingress_url: z
      .string()
      .meta({ description: "URL for senders. `{token}` is a placeholder for the secret of a url_token webhook." }),
    management: z.enum(["live", "files"]),
    created_at: timestamp(),
    updated_at: timestamp(),
    last_delivery_at: timestamp().nullable(),
  })
  .meta({ id: "Webhook" });

/** A webhook with its secret, which is returned only when it is generated. */
export const WebhookWithSecret = Webhook.extend({
  secret: z.string().optional().meta({ description: "Returned only in the response that generates it." }),
}).meta({ id: "WebhookWithSecret" });

export const LABELS = {
  accepted: "Accepted",
  duplicate: "Duplicate",
  rejected_auth: "Rejected (auth)",
  rejected_invalid_json: "Rejected (invalid JSON)",
  rejected_too_large: "Rejected (too large)",
} as const;
export type DeliveryOutcome = keyof typeof LABELS;

/** An entry of the delivery log. */
export const Delivery = z
  .object({
    uid: z.string(),
    webhook_uid: z.string(),
    delivery_id: z.string().nullable().meta({
      description:
        "Delivery id returned to the sender. null if the sender was not authenticated, or if the body was too large and the sender provided no id.",
    }),
    label: z.enum(Object.values(LABELS) as ["Accepted"]),
    outcome: z.enum(Object.keys(LABELS) as ["accepted"]),
    size_bytes: z.int(),
    received_at: timestamp(),
    runs: z
      .array(z.object({ automation: z.string(), automation_uid: z.string(), run_id: z.string() }))
      .meta({ description: "Runs that the delivery started, including replays." }),
  })
  .meta({ id: "Delivery" });

export const DeliveryWithPayload = Delivery.extend({
  payload: z.unknown().optional().meta({ description: "The body as received; of accepted deliveries only." }),
}).meta({ id: "DeliveryWithPayload" });

const fields = {
  name: z.string().trim().min(1).max(100),
  delivery_id_header: z
    .string()
    .nullable()
    .optional()
    .meta({ description: "Name of the header with the sender's event id." }),
  enabled: z.boolean().optional(),
};

export const NewWebhook = z.object({
  ...fields,
  auth_mode: AuthMode.optional().meta({ description: "Default: token. Immutable." }),
  signature_scheme: SignatureScheme.nullable()
    .optional()
    .meta({ description: "Required with the auth_mode signature, not permitted otherwise." }),
  signature_header: z.string().nullable().optional(),
  signature_prefix: z.string().nullable().optional(),
  secret_name: z
    .string()
    .nullable()
    .optional()
    .meta({ description: "A managed secret of the team, used instead of the webhook's own secret." }),
  secret: z.string().min(1).max(4096).optional().meta({
    description:
      "For the auth_mode signature: the provider's secret. Absent: generated for standard_webhooks; with any other scheme the webhook is disabled until rotate sets the secret.",
  }),
});

export const WebhookSettings = z.object({ ...fields, enabled: z.boolean() });

export const webhookRecord = (webhook: webhooks.Webhook): z.input<typeof Webhook> => ({
  uid: webhook.uid,
  factory_uid: webhook.factoryUid,
  name: webhook.name,
  auth_mode: webhook.authMode as "token",
  signature_scheme: (webhook.signatureScheme || null) as "github" | null,
  signature_header: webhook.signatureHeader || null,
  signature_prefix: webhook.signaturePrefix || null,
  secret_name: webhook.secretName || null,
  secret_set: webhook.secretSet,
  delivery_id_header: webhook.deliveryIdHeader || null,
  enabled: webhook.enabled,
  ingress_url: webhook.ingressUrl,
  management: webhook.management as "live",
  created_at: isoTime(webhook.createdAt!),
  updated_at: isoTime(webhook.updatedAt!),
  last_delivery_at: webhook.lastDeliveryAt ? isoTime(webhook.lastDeliveryAt) : null,
});

export const deliveryRecord = (
  delivery: webhooks.Delivery,
  runs: readonly factories.EventRun[],
): z.input<typeof Delivery> => ({
  uid: delivery.uid,
  webhook_uid: delivery.webhookUid,
  delivery_id: delivery.deliveryId || null,
  label: LABELS[delivery.outcome as DeliveryOutcome] as "Accepted",
  outcome: delivery.outcome as "accepted",
  size_bytes: Number(delivery.sizeBytes),
  received_at: isoTime(delivery.receivedAt!),
  runs: runs
    .filter(({ eventUid }) => eventUid === delivery.uid)
    .map(({ automationName, automationUid, runUid }) => ({
      automation: automationName,
      automation_uid: automationUid,
      run_id: runUid,
    })),
});
