import { deliveryText } from "../domain/envelope.ts";
import type { StoredDelivery } from "../domain/stored-delivery.ts";
import type { TriggerEvent } from "../domain/trigger-event.ts";
import { bodyOf, checkDelivery } from "../domain/webhook-trigger.ts";
import type { EventEvaluation } from "./decide-event.ts";

export type EvaluateDeliveryDeps = {
  deliveries: {
    /** Returns a delivery, or undefined if it is absent or pruned. */
    delivery(uid: string): Promise<StoredDelivery | undefined>;
  };
};

/** Evaluates a delivery to a webhook; its payload is parsed once for all automations. */
export async function evaluateDelivery(
  { deliveries }: EvaluateDeliveryDeps,
  event: TriggerEvent,
): Promise<EventEvaluation> {
  const uid = event.deliveryUid ?? event.uid;
  const delivery = await deliveries.delivery(uid);
  const { webhook_uid: webhookUid } = event.subject as { webhook_uid: string };
  return {
    check: checkDelivery(webhookUid, bodyOf(delivery?.payload)),
    veto: () => undefined,
    runInput: ({ rules }) => runInputOf(rules.prompt, delivery!), // without a delivery, no trigger matches
  };
}

const runInputOf = (
  prompt: string,
  { uid, webhookUid, webhookName, deliveryId, receivedAt, sizeBytes }: StoredDelivery,
): ReturnType<EventEvaluation["runInput"]> => ({
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
