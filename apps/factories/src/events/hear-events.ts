import type { Sql } from "@millwright/database";
import type { EventsHandler, StoredEvent } from "@millwright/events";
import type { TriggerEvent } from "../domain/trigger-event.ts";

export type HearEventsDeps = {
  /** Of some factories those in which an automation has a trigger of the provider. */
  listeningAmong: (tx: Sql, factoryUids: readonly string[], provider: string) => Promise<ReadonlySet<string>>;
  /** Leaves the decisions as work: they need what is elsewhere. */
  enqueueDecisions: (
    tx: Sql,
    all: readonly { event: TriggerEvent; traceparent: string | undefined }[],
  ) => Promise<unknown>;
};

/** Automations look at what the events of one provider tell, where any listens. `toldBy` says what an event tells; undefined: nothing to them. */
export const hearEvents =
  (
    { listeningAmong, enqueueDecisions }: HearEventsDeps,
    provider: string,
    toldBy: (event: StoredEvent) => Omit<TriggerEvent, "provider"> | undefined,
  ): EventsHandler =>
  async (tx, events) => {
    const told = events.flatMap((stored) => {
      const event = toldBy(stored);
      return event ? [{ event: { ...event, provider }, traceparent: stored.traceparent }] : [];
    });
    if (told.length === 0) return;
    const listening = await listeningAmong(
      tx,
      told.map(({ event }) => event.factoryUid),
      provider,
    );
    await enqueueDecisions(
      tx,
      told.filter(({ event }) => listening.has(event.factoryUid)),
    );
  };
