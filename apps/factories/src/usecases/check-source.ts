import type { Caller } from "@millwright/caller";
import { byPosition, locateInThread, parseDefinitionInThread, type Definition } from "@millwright/definition";
import { isDomainError } from "@millwright/errors";
import { AUTOMATIONS_PER_FACTORY_MAX } from "../domain/automation.ts";
import { changedSettings } from "../domain/factory-from-definition.ts";
import type { Factory } from "../domain/factory.ts";
import { completePlan, type PlanItem } from "../domain/plan.ts";
import {
  checkSourceSettings,
  hasErrors,
  revisionOf,
  sourceMissing,
  type DefinitionFile,
  type OwnedDiagnostic,
  type Tree,
  type UnplacedDiagnostic,
} from "../domain/source.ts";
import type { ApplyStore } from "../store/apply-store.ts";
import type { AutomationStore } from "../store/automation-store.ts";
import type { FactoryStore } from "../store/factory-store.ts";
import { findFactory } from "./scope.ts";
import type { Owners, SourceDeps } from "./source-deps.ts";

export type ValidateDeps = {
  factories: Pick<FactoryStore, "findByAlias">;
  applies: Pick<ApplyStore, "currentDefinition">;
  automations: Pick<AutomationStore, "countLive">;
  owners: Owners;
};

export type CheckSourceDeps = SourceDeps &
  ValidateDeps & { factories: SourceDeps["factories"] & ValidateDeps["factories"] };

export type Checked = { revision: string; diagnostics: OwnedDiagnostic[]; plan: PlanItem[] };

/**
 * Parses and validates the given files or the registered source, and dry-runs the stages of every owner. Everything
 * that an apply would reject is reported. With `plan`, also returns the plan. Changes nothing.
 * Errors: factory_not_found · not_authorized · source_missing (conflict) · source_unreachable · source_too_large ·
 * invalid_source.
 */
export async function checkSource(
  deps: CheckSourceDeps,
  caller: Caller,
  input: { factoryUid: string; files: DefinitionFile[]; plan: boolean },
): Promise<Checked> {
  const factory = await findFactory(deps, caller, input.factoryUid, "factory.view");
  const tree = await takeTree(deps, factory, input.files);
  const { definition, diagnostics } = await validate(deps, caller, factory, tree);
  if (!definition) return { revision: tree.revision, diagnostics, plan: [] };
  const staged = await stageAt(deps, caller, factory, definition, {
    version: factory.currentVersion + 1,
    isDryRun: true,
    tree,
  });
  return {
    revision: tree.revision,
    diagnostics: [...diagnostics, ...staged.diagnostics].sort(inOrder),
    plan: input.plan ? staged.plan : [],
  };
}

async function takeTree(deps: SourceDeps, factory: Factory, files: DefinitionFile[]): Promise<Tree> {
  if (files.length > 0) {
    const settings = checkSourceSettings({ kind: "files", files });
    return settings.kind === "files"
      ? { revision: revisionOf(settings.files), files: settings.files }
      : deps.trees.take(settings, factory.teamUid);
  }
  const source = await deps.sources.find(factory.uid);
  if (!source) throw sourceMissing();
  return deps.trees.take(source.settings, factory.teamUid);
}

/**
 * Returns the definition if its files are valid without the owners' checks. Otherwise returns all diagnostics,
 * including those of the owners for the parts that could be parsed.
 */
export async function validate(
  deps: ValidateDeps,
  caller: Caller,
  factory: Factory,
  tree: Tree,
): Promise<{ definition?: Definition; diagnostics: OwnedDiagnostic[] }> {
  const { definition, draft, diagnostics: found } = await parseDefinitionInThread(tree.files);
  const readable = definition ?? draft;
  const alias = readable?.factory.alias;
  const aliasOwner = alias === undefined ? undefined : await deps.factories.findByAlias(factory.teamUid, alias);
  const isTaken = aliasOwner !== undefined && aliasOwner !== factory.uid;
  if (definition && !isTaken) return { definition, diagnostics: found };
  const diagnostics = isTaken ? [...found, await aliasTakenAt(tree)] : found;
  const known = new Set(diagnostics.map(placeOf));
  const more = readable ? await diagnosticsOfOwners(deps, caller, factory, readable, tree) : [];
  return {
    diagnostics: [...diagnostics, ...more.filter((diagnostic) => !known.has(placeOf(diagnostic)))].sort(inOrder),
  };
}

const placeOf = ({ path, line, column, code }: OwnedDiagnostic): string => [path, line, column, code].join(" ");

/** Returns the owners' diagnostics of an invalid definition, or none if an owner cannot parse it or is unavailable. */
async function diagnosticsOfOwners(
  deps: ValidateDeps,
  caller: Caller,
  factory: Factory,
  definition: Definition,
  tree: Tree,
): Promise<OwnedDiagnostic[]> {
  try {
    return (
      await stageAtOwners(deps, caller, factory, definition, {
        version: factory.currentVersion + 1,
        isDryRun: true,
        tree,
      })
    ).diagnostics;
  } catch (error) {
    if (isDomainError(error)) return [];
    throw error;
  }
}

/** Returns the diagnostic for an alias of another factory of the team. */
export async function aliasTakenAt(tree: Tree): Promise<OwnedDiagnostic> {
  const message = "Another factory of the team has this alias.";
  const [taken] = await placed(
    [{ path: "factory.yaml", keys: ["alias"], code: "FF_DUPLICATE_NAME", message, severity: "error" }],
    tree,
  );
  return taken!;
}

/** Adds line and column to the diagnostics of owners, which do not have the files. */
export async function placed(
  found: readonly UnplacedDiagnostic[],
  { files }: Pick<Tree, "files">,
): Promise<OwnedDiagnostic[]> {
  const places = await locateInThread(files, found);
  return found.map(({ keys: _keys, ...diagnostic }, index) => ({ ...diagnostic, ...places[index]! }));
}

/**
 * Stages a definition at every owner (or dry-runs it) and completes their plans. Positions in files are added if there
 * is a tree.
 */
export async function stageAt(
  deps: Pick<ValidateDeps, "owners" | "applies" | "automations">,
  caller: Caller,
  factory: Factory,
  definition: Definition,
  stage: Stage,
): Promise<{ before: Definition | undefined; diagnostics: OwnedDiagnostic[]; plan: PlanItem[]; isValid: boolean }> {
  const { diagnostics, plan } = await stageAtOwners(deps, caller, factory, definition, stage);
  const before = await deps.applies.currentDefinition(factory.uid);
  const changedFields = changedSettings(factory, { definition, before });
  const own: PlanItem = {
    kind: "factory",
    name: "factory.yaml",
    action: changedFields.length > 0 ? "update" : "unchanged",
    changedFields,
  };
  return {
    before,
    diagnostics,
    plan: completePlan([own, ...plan], before, definition),
    isValid: !hasErrors(diagnostics),
  };
}

type Stage = { version: number; isDryRun: boolean; tree?: Pick<Tree, "files"> };

async function stageAtOwners(
  deps: Pick<ValidateDeps, "owners" | "automations">,
  caller: Caller,
  factory: Factory,
  definition: Definition,
  { tree = { files: [] }, ...stage }: Stage,
): Promise<{ diagnostics: OwnedDiagnostic[]; plan: PlanItem[] }> {
  const { diagnostics, plan } = await deps.owners.stage(caller, { factory, definition, ...stage });
  const live = definition.automations.length === 0 ? 0 : await deps.automations.countLive(factory.uid);
  return { diagnostics: [...(await placed(diagnostics, tree)), ...tooMany(definition.automations.length, live)], plan };
}

function tooMany(ofFiles: number, others: number): OwnedDiagnostic[] {
  if (ofFiles + others <= AUTOMATIONS_PER_FACTORY_MAX) return [];
  const message = `A factory has at most ${AUTOMATIONS_PER_FACTORY_MAX} automations; files define ${ofFiles}, and it has ${others} others.`;
  return [{ path: "factory.yaml", line: 1, column: 1, code: "FF_LIMIT_EXCEEDED", message, severity: "error" }];
}

export const inOrder = (a: OwnedDiagnostic, b: OwnedDiagnostic): number =>
  byPosition(a as Parameters<typeof byPosition>[0], b as Parameters<typeof byPosition>[1]);
