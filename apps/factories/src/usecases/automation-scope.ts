import type { Caller, Verb } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import type { Automation } from "../domain/automation.ts";
import type { Factory } from "../domain/factory.ts";
import type { AutomationStore } from "../store/automation-store.ts";
import { findFactory, type ScopeDeps } from "./scope.ts";

export type AutomationScopeDeps = ScopeDeps & {
  automations: Pick<AutomationStore, "find">;
};
export type AutomationRef = { readonly factoryUid: string; readonly automationUid: string };

/**
 * Returns an automation that the caller may access.
 * Errors: factory_not_found · automation_not_found (absent, malformed, or of another factory) · not_authorized.
 */
export async function findAutomation(
  deps: AutomationScopeDeps,
  caller: Caller,
  { factoryUid, automationUid }: AutomationRef,
  verb: Verb,
): Promise<{ factory: Factory; automation: Automation }> {
  const factory = await findFactory(deps, caller, factoryUid, verb);
  return { factory, automation: await automationOf(deps, factory, automationUid) };
}

/** Returns an automation of the factory. Errors: automation_not_found (absent, malformed, or of another factory). */
export async function automationOf(
  { automations }: Pick<AutomationScopeDeps, "automations">,
  factory: Factory,
  uid: string,
): Promise<Automation> {
  const automation = isUuid(uid) ? await automations.find(factory.uid, uid.toLowerCase()) : undefined;
  if (!automation) throw notFound("automation");
  return automation;
}
