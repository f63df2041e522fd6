import type { Sql } from "@millwright/database";
import type { EventHandler, StoredEvent } from "@millwright/events";
import type { DatabaseTime } from "../store/database-time.ts";
import { pauseForAgentDeletion, pauseForCreatorLeft } from "../usecases/pause-schedules.ts";
import { causedBy } from "./origin.ts";

/** Handles identity events: a schedule is paused when the agent or person that its runs act as is removed. */
export const onIdentityEvents = (time: DatabaseTime): Record<string, EventHandler> => {
  const pauseOfMember = (tx: Sql, event: StoredEvent): Promise<void> => {
    const [teamUid = "", userUid = ""] = event.entityUid.split(":");
    return pauseForCreatorLeft(tx, time, { teamUid, userUid }, causedBy(event));
  };
  return {
    "millwright.agent.deleted.v1": (tx, event) => pauseForAgentDeletion(tx, time, event.entityUid, causedBy(event)),
    "millwright.member.removed.v1": pauseOfMember,
    "millwright.member.updated.v1": async (tx, event) => {
      if (event.payload["role"] === "viewer") await pauseOfMember(tx, event);
    },
  };
};
