import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { notFound } from "@millwright/errors";
import {
  checkSelfImprovement,
  type SelfImprovementSettings,
  type SelfImprovementView,
} from "../domain/self-improvement.ts";
import type { ScorerUid } from "../domain/scorer.ts";
import { originOf } from "../events/origin.ts";
import type { ScorerStore } from "../store/scorer-store.ts";
import type { SelfImprovementStore } from "../store/self-improvement-store.ts";
import { changed, type ScorerRef } from "./change-scorer.ts";
import { findScorer, type ScorerScopeDeps } from "./scope.ts";
import { requireEditable, requireHuman, requireUnmanaged } from "./scorer-references.ts";

export type SelfImprovementDeps = ScorerScopeDeps & {
  selfImprovements: Pick<SelfImprovementStore, "find">;
  scorers: Pick<ScorerStore, "update" | "putSelfImprovement">;
  clock: Clock;
};

/**
 * Returns the self-improvement of a scorer. Errors: scorer_not_found · not_authorized · self_improvement_not_found (it
 * is disabled).
 */
export async function getSelfImprovement(
  deps: SelfImprovementDeps,
  caller: Caller,
  ref: ScorerRef,
): Promise<SelfImprovementView> {
  const { scorer } = await findScorer(deps, caller, ref.factoryUid, ref.scorerUid, "factory.view");
  return view(deps, scorer.uid);
}

/**
 * Creates or replaces the configuration and enables self-improvement, which increments the scorer's version.
 * Self-improvement of a scorer that files define is enabled in its file; its numbers are set here.
 *
 * Errors: scorer_not_found · not_authorized · human_required (permission_denied) · scorer_invalid · scorer_managed ·
 * managed_by_files (conflict).
 */
export async function putSelfImprovement(
  deps: SelfImprovementDeps,
  caller: Caller,
  ref: ScorerRef,
  given: SelfImprovementSettings,
): Promise<SelfImprovementView> {
  const { scorer } = await findScorer(deps, caller, ref.factoryUid, ref.scorerUid, "factory.manage");
  requireHuman(caller);
  requireUnmanaged(scorer);
  const settings = checkSelfImprovement(given);
  const now = deps.clock.now();
  await deps.scorers.putSelfImprovement(scorer.uid, settings, now, (current) => {
    if (current.selfImprovementEnabled) return undefined;
    requireEditable(current);
    return changed(current, { ...current, selfImprovementEnabled: true }, now, originOf(caller));
  });
  return view(deps, scorer.uid);
}

/**
 * Disables self-improvement and deletes its configuration. Has no effect if it is disabled. Errors: scorer_not_found ·
 * not_authorized · scorer_managed · managed_by_files (conflict).
 */
export async function deleteSelfImprovement(deps: SelfImprovementDeps, caller: Caller, ref: ScorerRef): Promise<void> {
  const { scorer } = await findScorer(deps, caller, ref.factoryUid, ref.scorerUid, "factory.manage");
  if (!scorer.selfImprovementEnabled) return;
  requireEditable(scorer);
  await deps.scorers.update(scorer.uid, (current) =>
    changed(current, { ...current, selfImprovementEnabled: false }, deps.clock.now(), originOf(caller)),
  );
}

async function view(deps: SelfImprovementDeps, uid: ScorerUid): Promise<SelfImprovementView> {
  const found = await deps.selfImprovements.find(uid);
  if (!found) throw notFound("self_improvement");
  return found;
}
