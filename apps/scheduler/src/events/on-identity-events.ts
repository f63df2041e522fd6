import type { Sql } from "@millwright/database";
import type { EventHandler } from "@millwright/events";
import { causedBy, type Origin } from "./origin.ts";

export type OnIdentityEventsDeps = {
  /** Pauses the schedules of an agent that is no more. */
  pauseAgent(tx: Sql, agentUid: string, origin: Origin): Promise<void>;
};

/** Reactions to the gateway's facts: without its agent a schedule rests. */
export const onIdentityEvents = (deps: OnIdentityEventsDeps): Record<string, EventHandler> => ({
  "millwright.agent.deleted.v1": (tx, event) => deps.pauseAgent(tx, event.entityUid, causedBy(event)),
});
