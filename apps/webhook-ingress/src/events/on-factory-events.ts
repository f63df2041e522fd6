import type { Clock } from "@millwright/clock";
import { isDomainError } from "@millwright/errors";
import { appendEvents, type EventHandlers, type StoredEvent } from "@millwright/events";
import { forgetDefinitions } from "../store/definition-store.ts";
import { deleteWebhooksOf } from "../store/webhook-store.ts";
import { activateDefinition } from "../usecases/project-definition.ts";
import { webhookFact, type Origin } from "./webhook-events.ts";

/** What becomes of webhooks when factories change: those of a committed definition serve; a deleted factory's are deleted. */
export const onFactoryEvents = ({ clock }: { clock: Clock }): EventHandlers => ({
  async "millwright.definition.activated.v1"(sql, event) {
    const { factory_uid: factoryUid, version } = event.payload as { factory_uid: string; version: number };
    await activateDefinition(sql, { clock }, causeOf(event), { factoryUid, version }).catch((error: unknown) => {
      // Committed before this service was there: it has nothing to serve of that version.
      if (!isDomainError(error) || error.reason !== "stage_missing") throw error;
    });
  },
  async "millwright.factory.deleted.v1"(sql, event) {
    const deleted = await deleteWebhooksOf(sql, event.entityUid, clock.now());
    await appendEvents(
      sql,
      deleted.map((webhook) => webhookFact("deleted", { ...webhook, version: webhook.version + 1 }, causeOf(event))),
    );
    await forgetDefinitions(sql, event.entityUid);
  },
});

const causeOf = (event: StoredEvent): Origin => ({ actor: event.actor, requestId: event.requestId, cause: event.uid });
