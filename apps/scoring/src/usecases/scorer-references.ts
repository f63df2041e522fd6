import type { Caller } from "@millwright/caller";
import { DomainError, invalidArgument } from "@millwright/errors";
import { RULE_MODEL, type Scorer, type ScorerSettings } from "../domain/scorer.ts";
import type { FactoryView } from "./scope.ts";

export type ReferenceDeps = {
  /** Checks that the agents exist. Errors: agent_not_found (absent, disabled, not visible or of another factory). */
  agents: { requireAgents(caller: Caller, factory: FactoryView, agentUids: readonly string[]): Promise<void> };
  models: { modelIds(caller: Caller, teamUid: string): Promise<ReadonlySet<string>> };
};

/**
 * Checks that agents and models named in settings exist. Those that `earlier` named are not checked again.
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
      `There is no model ${JSON.stringify(modelId)}. GET /agent/models lists them.`,
      { field: "model_id", model_id: modelId },
    );
  }
}

/**
 * Throws `human_required` (permission_denied) unless the caller is a person. Only people can enable self-improvement,
 * because its runs cost money and propose changes.
 */
export function requireHuman({ principal, run }: Caller): void {
  if (principal.type === "user" && !run) return;
  throw new DomainError({
    kind: "permission_denied",
    reason: "human_required",
    message: "Only a user can turn self-improvement on; this request is made by a service account or a run.",
  });
}

/** Throws `scorer_managed` (conflict) if the platform manages the scorer. */
export function requireUnmanaged({ kind }: Scorer): void {
  if (kind === "user") return;
  throw new DomainError({
    kind: "conflict",
    reason: "scorer_managed",
    message: "The platform manages this scorer for benchmarks. It cannot be changed, deleted or dispatched.",
  });
}

/** Throws `scorer_managed` or `managed_by_files` (conflict) if the platform manages the scorer or a file defines it. */
export function requireEditable(scorer: Scorer): void {
  requireUnmanaged(scorer);
  if (scorer.slug === null) return;
  throw managedByFiles(`The file scorers/${scorer.slug}/scorer.md defines this scorer; change it there.`);
}

/** Returns the error for a change through the API of what files define. */
export const managedByFiles = (message: string): DomainError =>
  new DomainError({ kind: "conflict", reason: "managed_by_files", message });
