import type { Caller } from "@millwright/caller";
import { DomainError, invalidArgument } from "@millwright/errors";
import { RULE_MODEL, type Scorer, type ScorerSettings } from "../domain/scorer.ts";
import type { FactoryView } from "./scope.ts";

export type ReferenceDeps = {
  /** Errors: agent_not_found (absent, disabled, not visible or of another factory). */
  agents: { requireAgents(caller: Caller, factory: FactoryView, agentUids: readonly string[]): Promise<void> };
  models: { modelIds(caller: Caller, teamUid: string): Promise<ReadonlySet<string>> };
};

/**
 * Checks that what settings name exists; what `earlier` named already is not checked again.
 *
 * Errors: agent_not_found (not_found, as for schedules) · model_unknown (invalid_argument).
 */
export async function requireReferences(
  deps: ReferenceDeps,
  caller: Caller,
  factory: FactoryView,
  settings: ScorerSettings,
  earlier?: ScorerSettings,
): Promise<void> {
  const known = new Set(earlier?.agents.map(({ agentUid }) => agentUid));
  await deps.agents.requireAgents(
    caller,
    factory,
    settings.agents.map(({ agentUid }) => agentUid).filter((uid) => !known.has(uid)),
  );
  const { modelId } = settings;
  if (modelId === RULE_MODEL || modelId === earlier?.modelId) return;
  if (!(await deps.models.modelIds(caller, factory.teamUid)).has(modelId)) {
    throw invalidArgument(
      "model_unknown",
      `There is no model ${JSON.stringify(modelId)}; GET /agent/models lists them.`,
      { field: "model_id", model_id: modelId },
    );
  }
}

/** Only people turn self-improvement on: its runs cost money and propose changes. Errors: human_required (permission_denied). */
export function requireHuman({ principal, run }: Caller): void {
  if (principal.type === "user" && !run) return;
  throw new DomainError({
    kind: "permission_denied",
    reason: "human_required",
    message: "Only a user can turn self-improvement on; this request is made by a service account or a run.",
  });
}

/** Errors: scorer_managed (conflict): the platform maintains the scorer. */
export function requireUnmanaged({ kind }: Scorer): void {
  if (kind === "user") return;
  throw new DomainError({
    kind: "conflict",
    reason: "scorer_managed",
    message: "The platform manages this scorer for benchmarks; it cannot be changed, deleted or dispatched.",
  });
}

/** Errors: scorer_managed · managed_by_files (conflict): a file defines the scorer. */
export function requireEditable(scorer: Scorer): void {
  requireUnmanaged(scorer);
  if (scorer.slug === null) return;
  throw managedByFiles(`The file scorers/${scorer.slug}/scorer.md defines this scorer; change it there.`);
}

/** What files define is changed in the files. */
export const managedByFiles = (message: string): DomainError =>
  new DomainError({ kind: "conflict", reason: "managed_by_files", message });
