import type { Sql } from "@millwright/database";
import { DomainError } from "@millwright/errors";
import type { EventHandlers, StoredEvent } from "@millwright/events";
import type { ScheduledAutomation, TriggerRule } from "../domain/trigger-schedule.ts";

export type OnAutomationEventsDeps = {
  /** The schedules of an automation are these from now on. */
  follow(tx: Sql, automation: ScheduledAutomation, saidAt: Date): Promise<void>;
  forget(tx: Sql, gone: { automationUid: string } | { factoryUid: string }): Promise<void>;
  /** There may be something to wait for. */
  wake(): void;
};

/**
 * Reactions to facts of factories: an automation comes due by the schedules of its latest fact, without it nothing does. A disabled
 * one comes due as well: that it starts nothing is a decision of factories, which records it.
 */
export function onAutomationEvents(deps: OnAutomationEventsDeps): EventHandlers {
  const followed = async (tx: Sql, event: StoredEvent): Promise<void> => {
    await deps.follow(tx, readAutomation(event), event.occurredAt);
    deps.wake();
  };
  return {
    "millwright.automation.created.v1": followed,
    "millwright.automation.updated.v1": followed,
    "millwright.automation.deleted.v1": (tx, event) => deps.forget(tx, { automationUid: event.entityUid }),
    "millwright.factory.deleted.v1": (tx, event) => deps.forget(tx, { factoryUid: event.entityUid }),
  };
}

function readAutomation({ entityUid: automationUid, teamUid, payload }: StoredEvent): ScheduledAutomation {
  const { factory_uid: factoryUid, schedules = [] } = payload; // facts of before schedules were told have none
  if (typeof factoryUid !== "string" || teamUid === undefined || !Array.isArray(schedules)) throw malformed();
  return { automationUid, factoryUid, teamUid, rules: schedules.map(readRule) };
}

function readRule(value: unknown): TriggerRule {
  const { cron, name = "" } = (value ?? {}) as Record<string, unknown>;
  if (typeof cron !== "string" || typeof name !== "string") throw malformed();
  return { cron, name };
}

const malformed = (): DomainError =>
  new DomainError({
    kind: "invalid_argument",
    reason: "event_malformed",
    message: "The fact about an automation does not have the agreed form.",
  });
