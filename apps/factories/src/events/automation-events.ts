import type { NewEvent } from "@millwright/events";
import type { Automation } from "../domain/automation.ts";
import type { JsonObject } from "@millwright/json";
import type { Origin } from "./origin.ts";

/**
 * Builds events of automations. Payload: `{factory_uid, name, enabled, management, schedules}`, always with all
 * schedules, never a prompt. `requested`: a user ran it or replayed a delivery (`{mode, event_uid, delivery_uid?,
 * dry_run?, outcome}`).
 */
export const automationEvent = (
  happened: "created" | "updated" | "deleted" | "run_requested",
  automation: Automation,
  origin: Origin,
  more: JsonObject = {},
): NewEvent => ({
  type: `millwright.automation.${happened}.v1`,
  entity: "automation",
  entityUid: automation.uid,
  entityVersion: automation.version,
  teamUid: automation.teamUid,
  ...origin,
  payload: {
    automation_uid: automation.uid,
    factory_uid: automation.factoryUid,
    name: automation.name,
    enabled: automation.enabled,
    management: automation.management,
    schedules: schedulesOf(automation),
    ...more,
  },
});

/** Returns the schedules for the scheduler. */
const schedulesOf = ({ rules }: Automation): { cron: string; name?: string }[] =>
  rules.triggers.flatMap(({ provider, schedule }) => (provider === "schedule" && schedule ? [{ ...schedule }] : []));
