import type { Sql } from "@millwright/database";
import type { EventHandler, EventHandlers, StoredEvent } from "@millwright/events";
import { DEFAULT_QUEUE_SETTINGS, type QueueSettings } from "../domain/queue-settings.ts";

export type OnQueueSettingsDeps = {
  /** Adopts settings, unless newer ones are known, and wakes whoever waits for work. */
  putQueueSettings(tx: Sql, scope: "team" | "agent" | "factory", uid: string, settings: QueueSettings): Promise<void>;
};

/** Of identity: a changed limit, weight, priority or pause is in force as soon as this is applied, for what is queued too. */
export const onIdentityQueueSettings = (deps: OnQueueSettingsDeps): EventHandlers => ({
  "millwright.team.updated.v1": adopt(deps, "team"),
  "millwright.agent.updated.v1": adopt(deps, "agent"),
});

/** Of factories. A new factory may have a limit from the start. */
export const onFactoryQueueSettings = (deps: OnQueueSettingsDeps): EventHandlers => ({
  "millwright.factory.created.v1": adopt(deps, "factory"),
  "millwright.factory.updated.v1": adopt(deps, "factory"),
});

const adopt =
  (deps: OnQueueSettingsDeps, scope: "team" | "agent" | "factory"): EventHandler =>
  async (tx, event) => {
    const settings = settingsOf(event);
    if (settings) await deps.putQueueSettings(tx, scope, event.entityUid, settings);
  };

/** Undefined: written before there were such settings. */
function settingsOf({ payload, entityVersion }: StoredEvent): QueueSettings | undefined {
  const {
    concurrency_limit: concurrencyLimit,
    queue_paused: isPaused,
    queue_weight: weight,
    queue_priority: priority,
  } = payload;
  if (typeof concurrencyLimit !== "number" || typeof isPaused !== "boolean") return undefined;
  return {
    ...DEFAULT_QUEUE_SETTINGS,
    concurrencyLimit,
    isPaused,
    version: entityVersion,
    ...(typeof weight === "number" ? { weight } : {}),
    ...(typeof priority === "number" ? { priority } : {}),
  };
}
