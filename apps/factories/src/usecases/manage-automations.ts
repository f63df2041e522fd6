import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";
import { clampPageSize, type Cursors } from "@millwright/paging";
import type { AutomationPart } from "@millwright/definition";
import {
  AUTOMATIONS_PER_FACTORY_MAX,
  changeAutomation,
  faultless,
  isSameButSwitch,
  managedByFiles,
  newAutomation,
  readAutomation,
  type Automation,
  type ReadAutomation,
} from "../domain/automation.ts";
import { idempotentRequest } from "@millwright/idempotency";
import type { JsonObject } from "@millwright/json";
import { automationEvent } from "../events/automation-events.ts";
import { originOf } from "../events/origin.ts";
import { findAutomation, type AutomationRef, type AutomationScopeDeps } from "./automation-scope.ts";
import type { Factory } from "../domain/factory.ts";
import type { AutomationStore } from "../store/automation-store.ts";
import type { ResponseStore } from "../store/idempotency.ts";
import { missingReferences } from "./check-automation.ts";
import { findFactory } from "./scope.ts";
import type { Owners } from "./source-deps.ts";

export type ManageAutomationsDeps = AutomationScopeDeps & {
  automations: AutomationScopeDeps["automations"] & Pick<AutomationStore, "list" | "create" | "update">;
  responses: Pick<ResponseStore, "find">;
  owners: Owners;
  cursors: Cursors;
  clock: Clock;
};

/** Lists the automations of a factory, oldest first. Errors: factory_not_found · not_authorized · invalid_cursor. */
export async function listAutomations(
  deps: ManageAutomationsDeps,
  caller: Caller,
  factoryUid: string,
  page: { size: number; token: string },
): Promise<{ automations: Automation[]; nextPageToken: string }> {
  const { uid } = await findFactory(deps, caller, factoryUid, "factory.view");
  const bind = { factory: uid };
  const [at, after] = page.token === "" ? [] : (deps.cursors.open("automations", bind, page.token) as string[]);
  const limit = clampPageSize(page.size, { default: 50, max: 100 });
  const rows = await deps.automations.list(
    uid,
    at === undefined ? undefined : { at: new Date(at), uid: after ?? "" },
    limit + 1,
  );
  const automations = rows.slice(0, limit);
  const last = rows.length > limit ? automations.at(-1) : undefined;
  return {
    automations,
    nextPageToken: last ? deps.cursors.seal("automations", bind, [last.createdAt.toISOString(), last.uid]) : "",
  };
}

/**
 * Creates an automation that no file defines.
 * Errors: factory_not_found · not_authorized · managed_by_files (conflict: the factory is defined by external files) ·
 * invalid_automation · too_many_automations (conflict) · idempotency_mismatch.
 */
export async function createAutomation(
  deps: ManageAutomationsDeps,
  caller: Caller,
  request: { factoryUid: string; automation: JsonObject; idempotencyKey: string },
): Promise<Automation> {
  const factory = await findFactory(deps, caller, request.factoryUid, "factory.manage");
  const origin = originOf(caller);
  const idempotency = idempotentRequest(
    caller.principal.uid,
    `create-automation ${factory.uid}`,
    request.idempotencyKey,
    request.automation,
  );
  const isRepeated = idempotency !== undefined && (await deps.responses.find(idempotency)) !== undefined;
  if (!isRepeated && factory.management === "external_files") throw managedByFiles();
  const part = isRepeated
    ? faultless(readAutomation(request.automation))
    : await checkedPart(deps, caller, factory, readAutomation(request.automation));
  const made = newAutomation(
    part,
    { factoryUid: factory.uid, teamUid: factory.teamUid, creator: origin.actor, management: "live" },
    deps.clock.now(),
  );
  const created = await deps.automations.create(made, automationEvent("created", made, origin), idempotency);
  if (!created)
    throw new DomainError({
      kind: "conflict",
      reason: "too_many_automations",
      message: `A factory has at most ${AUTOMATIONS_PER_FACTORY_MAX} automations. Delete one first.`,
    });
  return created;
}

/**
 * Returns the automation if it is valid and all resources that it references exist.
 * Errors: invalid_automation, with every fault as a detail.
 */
async function checkedPart(
  deps: ManageAutomationsDeps,
  caller: Caller,
  factory: Factory,
  { part, faults }: ReadAutomation,
): Promise<AutomationPart> {
  const missing = part ? await missingReferences(deps, caller, factory, part) : [];
  return faultless({ part, faults: [...faults, ...missing] });
}

/**
 * Replaces an automation. From then on, its runs are created for the caller. If a file defines the automation, only
 * `enabled` can be changed, and only if the service stores the files.
 * Errors: automation_not_found · not_authorized · managed_by_files (conflict) · invalid_automation.
 */
export async function replaceAutomation(
  deps: ManageAutomationsDeps,
  caller: Caller,
  ref: AutomationRef,
  body: JsonObject,
): Promise<Automation> {
  const { factory, automation } = await findAutomation(deps, caller, ref, "factory.manage");
  const read = readAutomation(body);
  // references are not checked: an automation can be disabled even if its references no longer exist
  const isSwitch = read.part !== undefined && isSameButSwitch(automation, read.part);
  const part =
    isSwitch || automation.management === "files" ? faultless(read) : await checkedPart(deps, caller, factory, read);
  const origin = originOf(caller);
  return deps.automations.update(factory.uid, automation.uid, (present) => {
    const isFile = present.management === "files";
    if (isFile && (factory.management !== "service_files" || !isSameButSwitch(present, part))) throw managedByFiles();
    const next = {
      ...changeAutomation(present, part, deps.clock.now()),
      ...(!isFile && { creator: origin.actor, creatorLostAccess: false }),
    };
    return { next, event: automationEvent("updated", next, origin) };
  });
}

/**
 * Deletes an automation. Its runs and decisions are retained.
 * Errors: automation_not_found · not_authorized · managed_by_files (conflict).
 */
export async function deleteAutomation(deps: ManageAutomationsDeps, caller: Caller, ref: AutomationRef): Promise<void> {
  const { factory, automation } = await findAutomation(deps, caller, ref, "factory.manage");
  await deps.automations.update(factory.uid, automation.uid, (present) => {
    if (present.management === "files") throw managedByFiles();
    const next = { ...present, version: present.version + 1, updatedAt: deps.clock.now() };
    return { next, isDeleted: true, event: automationEvent("deleted", next, originOf(caller)) };
  });
}
