import type { CapacityDefaults } from "../../catalog/domain/queue-settings.ts";
import { putSettings } from "../../runs/store/capacity-store.ts";
import type { EventHandler, EventHandlers, StoredEvent } from "@millwright/events";
import { DEFAULT_QUEUE_SETTINGS, type QueueSettings } from "../../catalog/domain/queue-settings.ts";

export type OnQueueSettingsDeps = { readonly capacityDefaults: CapacityDefaults };

/**
 * Returns handlers for events of identity. A changed limit, weight, priority or pause takes effect when its event is
 * handled, also for queued runs.
 */
export const onIdentityQueueSettings = (deps: OnQueueSettingsDeps): EventHandlers => ({
  "millwright.team.updated.v1": storeSettings(deps, "team"),
  "millwright.agent.updated.v1": storeSettings(deps, "agent"),
});

/** Returns handlers for events of factories. A new factory may have a limit from the start. */
export const onFactoryQueueSettings = (deps: OnQueueSettingsDeps): EventHandlers => ({
  "millwright.factory.created.v1": storeSettings(deps, "factory"),
  "millwright.factory.updated.v1": storeSettings(deps, "factory"),
});

const storeSettings =
  (deps: OnQueueSettingsDeps, scope: "team" | "agent" | "factory"): EventHandler =>
  async (tx, event) => {
    const settings = settingsOf(event);
    if (settings) await putSettings(tx, { scope, uid: event.entityUid }, settings, deps.capacityDefaults);
  };

/** Returns undefined for an event that was written before queue settings existed. */
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
