import { requireVerb, type Caller, type Verb } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { as, isUuid, type FactoryUid } from "@millwright/ids";
import type { Factory } from "../domain/factory.ts";

export type ScopeDeps = {
  factories: { find(uid: FactoryUid): Promise<Factory | undefined> };
  runs: {
    /** The factory of the run whose token the caller holds. */
    factoryOfRun(caller: Caller): Promise<string | undefined>;
  };
};

/**
 * The one way to reach a factory: it exists, the caller's team owns it, and the caller may do `verb` there. A run reaches
 * its own factory only.
 *
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
