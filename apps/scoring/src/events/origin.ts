import { actorOf, type Caller } from "@millwright/caller";
import type { StoredEvent } from "@millwright/events";

/** The actor, request and cause of an event; part of every event. */
export type Origin = { actor: { type: string; uid: string }; requestId: string; cause?: string };

/** Returns the origin of a change that a caller requested. */
export const originOf = (caller: Caller): Origin => {
  const { type, uid } = actorOf(caller);
  return { actor: { type, uid }, requestId: caller.requestId };
};

/** Returns the origin of a change that was caused by an event. */
export const causedBy = (event: StoredEvent): Origin => ({
  actor: event.actor,
  requestId: event.requestId,
  cause: event.uid,
});
