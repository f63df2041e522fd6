import type { Sql } from "@millwright/database";
import type { EventsHandler, StoredEvent } from "@millwright/events";
import type { TriggerEvent } from "../domain/trigger-event.ts";

export type EnqueueTriggerEventsDeps = {
  /** Returns those of the factories in which an automation has a trigger of the provider. */
  listeningAmong: (tx: Sql, factoryUids: readonly string[], provider: string) => Promise<ReadonlySet<string>>;
  /** Enqueues the decisions as work, because they need data of other services. */
  enqueueDecisions: (
    tx: Sql,
    triggerEvents: readonly { event: TriggerEvent; traceparent: string | undefined }[],
  ) => Promise<unknown>;
};

/**
 * Enqueues trigger events of one provider for factories with such triggers. `toTriggerEvent` returns undefined for
 * irrelevant events.
 */
export const enqueueTriggerEvents =
  (
    { listeningAmong, enqueueDecisions }: EnqueueTriggerEventsDeps,
    provider: string,
    toTriggerEvent: (event: StoredEvent) => Omit<TriggerEvent, "provider"> | undefined,
  ): EventsHandler =>
  async (tx, events) => {
    const triggerEvents = events.flatMap((stored) => {
      const event = toTriggerEvent(stored);
      return event ? [{ event: { ...event, provider }, traceparent: stored.traceparent }] : [];
    });
    if (triggerEvents.length === 0) return;
    const listening = await listeningAmong(
      tx,
      triggerEvents.map(({ event }) => event.factoryUid),
      provider,
    );
    await enqueueDecisions(
      tx,
      triggerEvents.filter(({ event }) => listening.has(event.factoryUid)),
    );
  };
