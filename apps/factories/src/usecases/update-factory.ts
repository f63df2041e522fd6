import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { changeSettings, type Factory, type FactoryChanges } from "../domain/factory.ts";
import { factoryUpdated } from "../events/factory-events.ts";
import { originOf } from "../events/origin.ts";
import type { FactoryStore } from "../store/factory-store.ts";
import { findFactory, type ScopeDeps } from "./scope.ts";

export type UpdateFactoryDeps = ScopeDeps & {
  factories: ScopeDeps["factories"] & Pick<FactoryStore, "update">;
  clock: Clock;
};

/**
 * Replaces exactly the given settings of a factory. An empty change does not even change `updatedAt`.
 * Errors: factory_not_found · not_authorized · invalid_factory · managed_by_files (invalid_argument) · alias_taken
 * (conflict).
 */
export async function updateFactory(
  deps: UpdateFactoryDeps,
  caller: Caller,
  uid: string,
  given: FactoryChanges,
): Promise<Factory> {
  const found = await findFactory(deps, caller, uid, "factory.manage");
  if (Object.keys(given).length === 0) return found;
  return deps.factories.update(found.uid, (factory) => {
    const next = changeSettings(factory, given, deps.clock.now());
    return { next, event: factoryUpdated(next, originOf(caller), Object.keys(given).sort()) };
  });
}
