import { deliveryText } from "../domain/envelope.ts";
import type { StoredDelivery } from "../domain/stored-delivery.ts";
import type { TriggerEvent } from "../domain/trigger-event.ts";
import { bodyOf, checkDelivery } from "../domain/webhook-trigger.ts";
import type { Look } from "./decide-event.ts";

export type LookAtDeliveryDeps = {
  deliveries: {
    /** Undefined: there is none, or it was forgotten. */
    delivery(uid: string): Promise<StoredDelivery | undefined>;
  };
};

/** A delivery to a webhook, whose payload is read once for all automations. */
export async function lookAtDelivery({ deliveries }: LookAtDeliveryDeps, event: TriggerEvent): Promise<Look> {
  const uid = event.deliveryUid ?? event.uid;
  const delivery = await deliveries.delivery(uid);
  const { webhook_uid: webhookUid } = event.subject as { webhook_uid: string };
  return {
    check: checkDelivery(webhookUid, bodyOf(delivery?.payload)),
    veto: () => undefined,
    tell: ({ rules }) => tellOf(rules.prompt, delivery!), // without one nothing matches
  };
}

const tellOf = (
  prompt: string,
  { uid, webhookUid, webhookName, deliveryId, receivedAt, sizeBytes }: StoredDelivery,
): ReturnType<Look["tell"]> => ({
  prompt: deliveryText(prompt, {
    webhookName,
    webhookUid,
    deliveryId,
    receivedAt: receivedAt.toISOString(),
    sizeBytes,
  }),
  source: "CUSTOM_WEBHOOK",
  metadata: { webhook_uid: webhookUid, delivery_id: deliveryId },
  payload: { deliveryUid: uid },
});
