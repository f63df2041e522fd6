import type { Clock } from "@millwright/clock";
import { appendEvents, type EventHandlers } from "@millwright/events";
import { deleteWebhooksOf } from "../store/webhook-store.ts";
import { webhookFact } from "./webhook-events.ts";

/** A deleted factory's webhooks are deleted: its senders get 404. */
export const onFactoryDeleted = ({ clock }: { clock: Clock }): EventHandlers => ({
  async "millwright.factory.deleted.v1"(sql, event) {
    const deleted = await deleteWebhooksOf(sql, event.entityUid, clock.now());
    const origin = { actor: event.actor, requestId: event.requestId, cause: event.uid };
    await appendEvents(sql, deleted.map((webhook) => webhookFact("deleted", { ...webhook, version: webhook.version + 1 }, origin)));
  },
});
