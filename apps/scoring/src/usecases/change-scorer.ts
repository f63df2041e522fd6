import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { invalidArgument } from "@millwright/errors";
import type { NewEvent } from "@millwright/events";
import { canonicalJson } from "@millwright/json";
import { checkSettings, mergeSettings, type GivenSettings, type SettingName } from "../domain/scorer-settings.ts";
import type { Scorer, ScorerSettings } from "../domain/scorer.ts";
import { originOf, type Origin } from "../events/origin.ts";
import { scorerDeleted, scorerUpdated } from "../events/scorer-events.ts";
import type { ScorerStore } from "../store/scorer-store.ts";
import { findScorer, type ScorerScopeDeps } from "./scope.ts";
import { requireEditable, requireHuman, requireReferences, type ReferenceDeps } from "./scorer-references.ts";

export type ScorerRef = { readonly factoryUid: string; readonly scorerUid: string };

export type ChangeScorerDeps = ScorerScopeDeps &
  ReferenceDeps & {
    scorers: Pick<ScorerStore, "update" | "delete">;
    clock: Clock;
  };

/**
 * Changes the named settings and increments the version. Attempts in flight retain the configuration that they started
 * with. Disabling self-improvement deletes its configuration.
 *
 * Errors: scorer_not_found · not_authorized · scorer_managed (conflict) · managed_by_files (conflict) · update_empty
 * (invalid_argument) · those of `checkSettings` · human_required · agent_not_found · model_unknown · scorer_name_taken.
 */
export async function updateScorer(
  deps: ChangeScorerDeps,
  caller: Caller,
  ref: ScorerRef,
  given: GivenSettings,
  named: ReadonlySet<SettingName>,
): Promise<Scorer> {
  const { factory, scorer } = await findScorer(deps, caller, ref.factoryUid, ref.scorerUid, "factory.manage");
  if (named.size === 0) throw invalidArgument("update_empty", "The request changes nothing. Send at least one member.");
  requireEditable(scorer);
  if (named.has("selfImprovementEnabled") && given.selfImprovementEnabled) requireHuman(caller);
  await requireReferences(deps, caller, factory, checkSettings(mergeSettings(scorer, given, named)), scorer);
  return deps.scorers.update(scorer.uid, (current) =>
    changed(current, checkSettings(mergeSettings(current, given, named)), deps.clock.now(), originOf(caller)),
  );
}

/**
 * Deletes a scorer with its attempts, scores, reasons and self-improvement, and cancels its judge runs.
 *
 * Errors: scorer_not_found · not_authorized · scorer_managed (conflict) · managed_by_files (conflict).
 */
export async function deleteScorer(deps: ChangeScorerDeps, caller: Caller, ref: ScorerRef): Promise<void> {
  const { scorer } = await findScorer(deps, caller, ref.factoryUid, ref.scorerUid, "factory.manage");
  requireEditable(scorer);
  await deps.scorers.delete(scorer.uid, (current) => scorerDeleted(current, originOf(caller)));
}

/** Returns the scorer with other settings and the next version, and the event of the change. */
export function changed(
  scorer: Scorer,
  settings: ScorerSettings,
  now: Date,
  origin: Origin,
): { next: Scorer; event: NewEvent } {
  const next = { ...scorer, ...settings, version: scorer.version + 1, updatedAt: now };
  return { next, event: scorerUpdated(next, origin, changedMembers(scorer, settings)) };
}

const MEMBERS: Readonly<Record<keyof ScorerSettings, string>> = {
  name: "name",
  description: "description",
  scopeMode: "scope_mode",
  agents: "agents",
  labels: "allowed_classifications",
  threshold: "threshold",
  scoringPrompt: "scoring_prompt",
  modelId: "model_id",
  samplingRate: "sampling_rate",
  agentConfig: "agent_config",
  rule: "rule",
  selfImprovementEnabled: "self_improvement_enabled",
};

const changedMembers = (before: ScorerSettings, after: ScorerSettings): string[] =>
  (Object.keys(MEMBERS) as (keyof ScorerSettings)[])
    .filter((key) => canonicalJson(before[key]) !== canonicalJson(after[key]))
    .map((key) => MEMBERS[key]);
