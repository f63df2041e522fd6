import type { Caller } from "@millwright/caller";
import { isDomainError } from "@millwright/errors";
import type { Factory } from "../domain/factory.ts";
import type { PlanItem } from "../domain/plan.ts";
import { hasErrors, sourceMissing, type OwnedDiagnostic, type Source, type Tree } from "../domain/source.ts";
import type { BranchStore } from "../store/branch-store.ts";
import { inOrder, stageAt, validate, type CheckSourceDeps } from "./check-source.ts";
import { findFactory } from "./scope.ts";

export type GetDriftDeps = CheckSourceDeps & {
  branches: Pick<BranchStore, "findLive">;
};

/**
 * Differences from the active definition: the owners' current state, and what the registered head would change. Equal
 * resources are omitted.
 */
export type Drift = {
  activeVersion: number;
  activeRevision: string | null;
  serving: PlanItem[];
  head: DriftFromHead;
};

/** UNKNOWN: the head is unknown, or its tree could not be read for the reason given. INVALID: it cannot be applied. */
export type DriftFromHead = {
  state: "SAME" | "DIFFERS" | "INVALID" | "UNKNOWN";
  revision: string | null;
  plan: PlanItem[];
  diagnostics: OwnedDiagnostic[];
  error?: { code: string; message: string };
};

/**
 * Compares, field by field, the state of every owner with the active definition, and that definition with the one at
 * the production branch's registered head (or with the registered files). Changes nothing.
 * Errors: factory_not_found · not_authorized · source_missing (conflict) · unavailable, if an owner is unavailable.
 */
export async function getDrift(deps: GetDriftDeps, caller: Caller, factoryUid: string): Promise<Drift> {
  const factory = await findFactory(deps, caller, factoryUid, "factory.view");
  const source = await deps.sources.find(factory.uid);
  if (!source) throw sourceMissing();
  const active = await deps.applies.currentDefinition(factory.uid);
  const served = active
    ? await stageAt(deps, caller, factory, active, { version: factory.currentVersion, isDryRun: true })
    : { plan: [] };
  return {
    activeVersion: factory.currentVersion,
    activeRevision: source.status.appliedRevision,
    serving: changes(served.plan),
    head: await fromHead(deps, caller, factory, source),
  };
}

async function fromHead(deps: GetDriftDeps, caller: Caller, factory: Factory, source: Source): Promise<DriftFromHead> {
  const { settings } = source;
  const branch = settings.kind === "git" ? await deps.branches.findLive(factory.uid, settings.branch) : undefined;
  const revision = branch?.registeredHeadSha ?? null;
  const unknown = { state: "UNKNOWN" as const, revision, plan: [], diagnostics: [] };
  if (settings.kind === "git" && revision === null) return { ...unknown, error: branch?.pollError ?? undefined };
  const tree = await deps.trees.take(settings, factory.teamUid, revision ?? undefined).catch((error: unknown) => {
    if (isDomainError(error)) return error;
    throw error;
  });
  if (!isTree(tree)) {
    return tree.reason === "definition_invalid"
      ? { ...unknown, state: "INVALID", diagnostics: tree.details as OwnedDiagnostic[] }
      : { ...unknown, error: { code: tree.reason, message: tree.message } };
  }
  const { definition, diagnostics } = await validate(deps, caller, factory, tree);
  if (!definition) return { state: "INVALID", revision: tree.revision, plan: [], diagnostics };
  const staged = await stageAt(deps, caller, factory, definition, {
    version: factory.currentVersion + 1,
    isDryRun: true,
    tree,
  });
  const all = [...diagnostics, ...staged.diagnostics].sort(inOrder);
  const plan = changes(staged.plan);
  return {
    state: hasErrors(all) ? "INVALID" : plan.length > 0 ? "DIFFERS" : "SAME",
    revision: tree.revision,
    plan,
    diagnostics: all,
  };
}

const isTree = (value: Tree | Error): value is Tree => "files" in value;
const changes = (plan: readonly PlanItem[]): PlanItem[] => plan.filter(({ action }) => action !== "unchanged");
