import type { EventsHandler, StoredEvent } from "@millwright/events";
import type { TriggerEvent } from "../domain/trigger-event.ts";
import { factoriesWithTrigger } from "../store/automation-store.ts";
import { enqueueDecisions } from "../store/decision-store.ts";

/**
 * Enqueues trigger events of one provider for factories with such triggers, as work, because decisions need data of
 * other services. `toTriggerEvent` returns undefined for irrelevant events.
 */
export const enqueueTriggerEvents =
  (
    provider: string,
    toTriggerEvent: (event: StoredEvent) => Omit<TriggerEvent, "provider"> | undefined,
  ): EventsHandler =>
  async (tx, events) => {
    const triggerEvents = events.flatMap((stored) => {
      const event = toTriggerEvent(stored);
      return event ? [{ event: { ...event, provider }, traceparent: stored.traceparent }] : [];
    });
    if (triggerEvents.length === 0) return;
    const listening = await factoriesWithTrigger(
      tx,
      triggerEvents.map(({ event }) => event.factoryUid),
      provider,
    );
    await enqueueDecisions(
      tx,
      triggerEvents.filter(({ event }) => listening.has(event.factoryUid)),
    );
  };
