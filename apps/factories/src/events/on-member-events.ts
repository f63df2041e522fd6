import type { Clock } from "@millwright/clock";
import type { Sql } from "@millwright/database";
import type { EventHandler, StoredEvent } from "@millwright/events";
import { withoutCreator } from "../domain/automation.ts";
import { updateAutomationsOfMember } from "../store/automation-store.ts";
import { automationEvent } from "./automation-events.ts";
import { causedBy } from "./origin.ts";

/** Disables the automations of a person who was removed from the team or became a viewer. */
export const onMemberEvents = (clock: Clock): Record<string, EventHandler> => {
  const disable = (tx: Sql, event: StoredEvent): Promise<void> => {
    const [teamUid = "", userUid = ""] = event.entityUid.split(":");
    return updateAutomationsOfMember(tx, { teamUid, userUid, since: event.occurredAt }, (automation) => {
      const next = withoutCreator(automation, clock.now());
      return { next, event: automationEvent("updated", next, causedBy(event)) };
    });
  };
  return {
    "millwright.member.removed.v1": disable,
    "millwright.member.updated.v1": async (tx, event) => {
      if (event.payload["role"] === "viewer") await disable(tx, event);
    },
  };
};
