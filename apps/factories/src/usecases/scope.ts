import { requireVerb, type Caller, type Verb } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { as, isUuid, type FactoryUid } from "@millwright/ids";
import type { Factory } from "../domain/factory.ts";
import type { FactoryStore } from "../store/factory-store.ts";

export type ScopeDeps = {
  factories: Pick<FactoryStore, "find">;
  runs: {
    /** Returns the factory of the run whose token the caller uses. */
    factoryOfRun(caller: Caller): Promise<string | undefined>;
  };
};

/**
 * Returns a factory that exists, that is visible to the caller, and for which the caller has `verb`. A run can access
 * only its own factory.
 * Errors: factory_not_found (absent, malformed, or not visible) · not_authorized.
 */
export async function findFactory(deps: ScopeDeps, caller: Caller, uid: string, verb: Verb): Promise<Factory> {
  const factory = isUuid(uid) ? await deps.factories.find(as<FactoryUid>(uid)) : undefined;
  if (!factory) throw notFound("factory");
  requireVerb(caller, factory.teamUid, "factory.view", "factory");
  if (caller.run && (await deps.runs.factoryOfRun(caller)) !== factory.uid) throw notFound("factory");
  requireVerb(caller, factory.teamUid, verb, "factory");
  return factory;
}
