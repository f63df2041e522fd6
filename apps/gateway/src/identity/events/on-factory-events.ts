import type { Clock } from "@millwright/clock";
import type { EventHandlers, StoredEvent } from "@millwright/events";
import { activateDefinition, eraseFactory } from "../usecases/activate-definition.ts";
import type { Cause } from "./facts.ts";

/** Handles events of factories: activates a committed definition, and erases what belongs to a deleted factory. */
export const onFactoryEvents = (deps: { clock: Clock }): EventHandlers => ({
  async "millwright.definition.activated.v1"(sql, event) {
    const { factory_uid: factoryUid, version } = event.payload as { factory_uid: string; version: number };
    await activateDefinition({ sql, clock: deps.clock }, causeOf(event), { factoryUid, version });
  },
  async "millwright.factory.deleted.v1"(sql, event) {
    if (event.teamUid)
      await eraseFactory({ sql, clock: deps.clock }, causeOf(event), {
        factoryUid: event.entityUid,
        teamUid: event.teamUid,
      });
  },
});

const causeOf = (event: StoredEvent): Cause => ({ actor: event.actor, requestId: event.requestId, cause: event.uid });
