import type { Sql } from "@millwright/database";
import { DomainError } from "@millwright/errors";
import type { EventHandlers, StoredEvent } from "@millwright/events";
import type { ScheduledAutomation, TriggerRule } from "../domain/trigger-schedule.ts";
import { deleteTriggers, type TriggerStore } from "../store/trigger-store.ts";

export type OnAutomationEventsDeps = {
  triggers: Pick<TriggerStore, "applyAutomation">;
  /** Wakes the trigger loop. */
  wake(): void;
};

/**
 * Handles events of factories: the latest event of an automation defines its schedules. A disabled automation comes due
 * as well, so that factories can record the decision not to start a run.
 */
export function onAutomationEvents(deps: OnAutomationEventsDeps): EventHandlers {
  const applyEvent = async (tx: Sql, event: StoredEvent): Promise<void> => {
    await deps.triggers.applyAutomation(tx, readAutomation(event), event.occurredAt);
    deps.wake();
  };
  return {
    "millwright.automation.created.v1": applyEvent,
    "millwright.automation.updated.v1": applyEvent,
    "millwright.automation.deleted.v1": (tx, event) => deleteTriggers(tx, { automationUid: event.entityUid }),
    "millwright.factory.deleted.v1": (tx, event) => deleteTriggers(tx, { factoryUid: event.entityUid }),
  };
}

function readAutomation({ entityUid: automationUid, teamUid, payload }: StoredEvent): ScheduledAutomation {
  const { factory_uid: factoryUid, schedules = [] } = payload; // events of early releases have no schedules
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
    message: "The automation event has an invalid payload.",
  });
