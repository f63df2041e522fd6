import type { NewEvent } from "@millwright/events";
import type { Factory } from "../domain/factory.ts";
import type { Origin } from "./origin.ts";

/**
 * Events of factories. Payload: `{factory_uid, team_uid, concurrency_limit, queue_paused}`, and for updates the changed
 * members.
 */
export const factoryCreated = (factory: Factory, origin: Origin): NewEvent => newEvent("created", factory, origin);
export const factoryUpdated = (factory: Factory, origin: Origin, changed: readonly string[]): NewEvent =>
  newEvent("updated", factory, origin, { changed: [...changed] });
export const factoryDeleted = (factory: Factory, origin: Origin): NewEvent => newEvent("deleted", factory, origin);

/** A version of the factory's definition was committed: its owners activate it. Payload: `{factory_uid, version}`. */
export const definitionActivated = (factory: Factory, origin: Origin): NewEvent => ({
  type: "millwright.definition.activated.v1",
  entity: "definition",
  entityUid: factory.uid,
  entityVersion: factory.currentVersion,
  teamUid: factory.teamUid,
  ...origin,
  payload: { factory_uid: factory.uid, version: factory.currentVersion },
});

const newEvent = (past: string, factory: Factory, origin: Origin, more: { changed?: string[] } = {}): NewEvent => ({
  type: `millwright.factory.${past}.v1`,
  entity: "factory",
  entityUid: factory.uid,
  entityVersion: factory.version,
  teamUid: factory.teamUid,
  ...origin,
  payload: {
    factory_uid: factory.uid,
    team_uid: factory.teamUid,
    concurrency_limit: factory.concurrencyLimit,
    queue_paused: factory.queuePaused,
    ...more,
  },
});
