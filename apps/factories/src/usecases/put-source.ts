import { requireVerb, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import type { Factory } from "../domain/factory.ts";
import { checkSourceSettings, type Source, type SourceSettings } from "../domain/source.ts";
import { branchCreated, branchUntracked } from "../events/branch-events.ts";
import { factoryUpdated } from "../events/factory-events.ts";
import { originOf } from "../events/origin.ts";
import type { SourceStore } from "../store/source-store.ts";
import { findFactory } from "./scope.ts";
import type { SourceDeps } from "./source-deps.ts";
import { withWarnings, type SourceWarningsDeps } from "./source-warnings.ts";

export type PutSourceDeps = SourceDeps &
  SourceWarningsDeps & {
    sources: SourceDeps["sources"] & Pick<SourceStore, "put">;
    heads: { wake(): void };
    clock: Clock;
  };

/**
 * Registers the source of a factory's definition: files that the service stores, or a git repository, whose branch is
 * tracked from then on. The source is not applied. Naming a secret requires the right to manage secrets, because the
 * repository receives its value.
 * Errors: factory_not_found · not_authorized · invalid_source · source_too_large (too_large) · repository_not_allowed.
 */
export async function putSource(
  deps: PutSourceDeps,
  caller: Caller,
  factoryUid: string,
  given: SourceSettings,
): Promise<{ factory: Factory; source: Source }> {
  const factory = await findFactory(deps, caller, factoryUid, "factory.manage");
  const settings = checkSourceSettings(given);
  deps.trees.check(settings);
  if (settings.kind === "git" && settings.secretName !== undefined)
    requireVerb(caller, factory.teamUid, "secret.manage", "factory");
  const origin = originOf(caller);
  const source = await deps.sources.put(factory.uid, settings, deps.clock.now(), {
    updated: (next) => factoryUpdated(next, origin, ["source"]),
    created: (branch) => branchCreated(branch, origin),
    deleted: (branch) => branchUntracked(branch, origin),
  });
  deps.heads.wake();
  return { factory, source: await withWarnings(deps, caller, factory, source) };
}
