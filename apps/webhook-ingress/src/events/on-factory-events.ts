import type { Clock } from "@millwright/clock";
import { isDomainError } from "@millwright/errors";
import { appendEvents, type EventHandlers, type StoredEvent } from "@millwright/events";
import { deleteDefinitions } from "../store/definition-store.ts";
import { deleteWebhooksOf } from "../store/webhook-store.ts";
import { activateDefinition } from "../usecases/project-definition.ts";
import { buildWebhookEvent, type Origin } from "./webhook-events.ts";

/** Handles events of factories: activates the webhooks of a definition and deletes those of a deleted factory. */
export const onFactoryEvents = ({ clock }: { clock: Clock }): EventHandlers => ({
  async "millwright.definition.activated.v1"(sql, event) {
    const { factory_uid: factoryUid, version } = event.payload as { factory_uid: string; version: number };
    await activateDefinition(sql, { clock }, causeOf(event), { factoryUid, version }).catch((error: unknown) => {
      // The definition is older than this service, so it has no webhooks here.
      if (!isDomainError(error) || error.reason !== "stage_missing") throw error;
    });
  },
  async "millwright.factory.deleted.v1"(sql, event) {
    const deleted = await deleteWebhooksOf(sql, event.entityUid, clock.now());
    await appendEvents(
      sql,
      deleted.map((webhook) =>
        buildWebhookEvent("deleted", { ...webhook, version: webhook.version + 1 }, causeOf(event)),
      ),
    );
    await deleteDefinitions(sql, event.entityUid);
  },
});

const causeOf = (event: StoredEvent): Origin => ({ actor: event.actor, requestId: event.requestId, cause: event.uid });
