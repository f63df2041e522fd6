import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import type { NewEvent } from "@millwright/events";
import type { FactoryUid } from "@millwright/ids";
import type { Factory } from "../domain/factory.ts";
import { checkSourceSettings, type Source, type SourceSettings } from "../domain/source.ts";
import { factoryUpdated } from "../events/factory-events.ts";
import { originOf } from "../events/origin.ts";
import { findFactory } from "./scope.ts";
import type { SourceDeps } from "./source-deps.ts";

export type PutSourceDeps = SourceDeps & {
  sources: SourceDeps["sources"] & {
    /** Replaces the registered source; what serves, serves on. Errors: factory_not_found. */
    put(uid: FactoryUid, settings: SourceSettings, now: Date, fact: (factory: Factory) => NewEvent): Promise<Source>;
  };
  clock: Clock;
};

/**
 * Registers where a factory's definition comes from: files that the service keeps, or a git repository. Does not apply it.
 *
 * Errors: factory_not_found · not_authorized · invalid_source · source_too_large (too_large) · repository_not_allowed.
 */
export async function putSource(deps: PutSourceDeps, caller: Caller, factoryUid: string, given: SourceSettings): Promise<{ factory: Factory; source: Source }> {
  const factory = await findFactory(deps, caller, factoryUid, "factory.manage");
  const settings = checkSourceSettings(given);
  deps.trees.check(settings);
  const source = await deps.sources.put(factory.uid, settings, deps.clock.now(), (next) => factoryUpdated(next, originOf(caller), ["source"]));
  return { factory, source };
}
