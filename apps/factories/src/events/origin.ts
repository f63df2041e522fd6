import { actorOf, type Caller } from "@millwright/caller";
import type { StoredEvent } from "@millwright/events";

/** The actor, request and cause of a change; part of every event. */
export type Origin = { actor: { type: string; uid: string }; requestId: string; cause?: string };

export const originOf = (caller: Caller): Origin => {
  const { type, uid } = actorOf(caller);
  return { actor: { type, uid }, requestId: caller.requestId };
};

/** Returns the origin of a change that an event caused. */
export const causedBy = (event: StoredEvent): Origin => ({
  actor: event.actor,
  requestId: event.requestId,
  cause: event.uid,
});
