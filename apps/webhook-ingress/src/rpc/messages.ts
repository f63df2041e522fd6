import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { webhooks } from "@millwright/contracts";
import { optionalTimestamp } from "@millwright/rpc";
import type { Delivery } from "../domain/delivery.ts";
import { ingressUrl, type Webhook } from "../domain/webhook.ts";

/**
 * Returns the message of a webhook. `token` is shown within the address, only when the secret is created or rotated.
 */
export const webhookMessage = (webhook: Webhook, base: string, token?: string): webhooks.Webhook =>
  create(webhooks.WebhookSchema, {
    uid: webhook.uid,
    factoryUid: webhook.factoryUid,
    teamUid: webhook.teamUid,
    name: webhook.name,
    authMode: webhook.authMode,
    signatureScheme: webhook.signatureScheme ?? "",
    signatureHeader: webhook.signatureHeader ?? "",
    signaturePrefix: webhook.signaturePrefix ?? "",
    secretName: webhook.secretName ?? "",
    secretSet: webhook.isSecretSet,
    deliveryIdHeader: webhook.deliveryIdHeader ?? "",
    enabled: webhook.enabled,
    ingressUrl: ingressUrl(base, webhook, token),
    management: webhook.management,
    createdAt: timestampFromDate(webhook.createdAt),
    updatedAt: timestampFromDate(webhook.updatedAt),
    lastDeliveryAt: optionalTimestamp(webhook.lastDeliveryAt),
  });

export const deliveryMessage = (delivery: Delivery): MessageInitShape<typeof webhooks.DeliverySchema> => ({
  uid: delivery.uid,
  webhookUid: delivery.webhookUid,
  factoryUid: delivery.factoryUid,
  teamUid: delivery.teamUid,
  deliveryId: delivery.deliveryId ?? "",
  outcome: delivery.outcome,
  sizeBytes: BigInt(delivery.sizeBytes),
  receivedAt: timestampFromDate(delivery.receivedAt),
});
