import type { Sql } from "@millwright/database";
import type { EventHandler, StoredEvent } from "@millwright/events";
import { causedBy, type Origin } from "./origin.ts";

export type OnIdentityEventsDeps = {
  /** Pauses the schedules of an agent that was deleted. */
  pauseAgent(tx: Sql, agentUid: string, origin: Origin): Promise<void>;
  /** Pauses a team's schedules that create runs for a person who lost the right to it. */
  pauseMember(tx: Sql, member: { readonly teamUid: string; readonly userUid: string }, origin: Origin): Promise<void>;
};

/** Handles identity events: a schedule is paused when the agent or person that its runs act as is removed. */
export const onIdentityEvents = (deps: OnIdentityEventsDeps): Record<string, EventHandler> => {
  const pauseMember = (tx: Sql, event: StoredEvent): Promise<void> => {
    const [teamUid = "", userUid = ""] = event.entityUid.split(":");
    return deps.pauseMember(tx, { teamUid, userUid }, causedBy(event));
  };
  return {
    "millwright.agent.deleted.v1": (tx, event) => deps.pauseAgent(tx, event.entityUid, causedBy(event)),
    "millwright.member.removed.v1": pauseMember,
    "millwright.member.updated.v1": async (tx, event) => {
      if (event.payload["role"] === "viewer") await pauseMember(tx, event);
    },
  };
};
