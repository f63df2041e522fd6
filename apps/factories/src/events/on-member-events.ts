import type { Clock } from "@millwright/clock";
import type { Sql } from "@millwright/database";
import type { EventHandler, NewEvent, StoredEvent } from "@millwright/events";
import { withoutCreator, type Automation } from "../domain/automation.ts";
import { automationEvent } from "./automation-events.ts";
import { causedBy } from "./origin.ts";

export type OnMemberEventsDeps = {
  updateAutomationsOfMember: (
    tx: Sql,
    member: { teamUid: string; userUid: string; since: Date },
    change: (automation: Automation) => { next: Automation; fact: NewEvent },
  ) => Promise<void>;
  clock: Clock;
};

/** Disables the automations of a person who was removed from the team or became a viewer. */
export const onMemberEvents = ({
  updateAutomationsOfMember,
  clock,
}: OnMemberEventsDeps): Record<string, EventHandler> => {
  const disable = (tx: Sql, event: StoredEvent): Promise<void> => {
    const [teamUid = "", userUid = ""] = event.entityUid.split(":");
    return updateAutomationsOfMember(tx, { teamUid, userUid, since: event.occurredAt }, (automation) => {
      const next = withoutCreator(automation, clock.now());
      return { next, fact: automationEvent("updated", next, causedBy(event)) };
    });
  };
  return {
    "millwright.member.removed.v1": disable,
    "millwright.member.updated.v1": async (tx, event) => {
      if (event.payload["role"] === "viewer") await disable(tx, event);
    },
  };
};
