import { actorOf, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { idempotentRequest } from "@millwright/idempotency";
import { as, newUid } from "@millwright/ids";
import { checkSettings, type GivenSettings } from "../domain/scorer-settings.ts";
import type { Scorer, ScorerSettings, ScorerUid } from "../domain/scorer.ts";
import { originOf } from "../events/origin.ts";
import { scorerCreated } from "../events/scorer-events.ts";
import type { ScorerStore } from "../store/scorer-store.ts";
import { findFactory, type FactoryView, type ScopeDeps } from "./scope.ts";
import { managedByFiles, requireHuman, requireReferences, type ReferenceDeps } from "./scorer-references.ts";

export type CreateScorerDeps = ScopeDeps &
  ReferenceDeps & {
    scorers: Pick<ScorerStore, "findCreated" | "create">;
    clock: Clock;
  };

/**
 * Creates an active scorer, and its self-improvement configuration if self_improvement_enabled is set. Existing runs
 * are not scored; runs that finish from now on are.
 *
 * Errors: factory_not_found · not_authorized · managed_by_files (files outside of the platform define the factory) ·
 * those of `checkSettings` · human_required · agent_not_found · model_unknown · scorer_name_taken (conflict) ·
 * idempotency_mismatch (conflict).
 */
export async function createScorer(
  deps: CreateScorerDeps,
  caller: Caller,
  input: { factoryUid: string; settings: GivenSettings; idempotencyKey: string },
): Promise<Scorer> {
  const factory = await findFactory(deps, caller, input.factoryUid, "factory.manage");
  const settings = checkSettings(input.settings);
  if (settings.selfImprovementEnabled) requireHuman(caller);
  const now = deps.clock.now();
  const request = idempotentRequest(actorOf(caller).uid, "create-scorer", input.idempotencyKey, {
    factoryUid: factory.uid,
    settings,
  });
  const scorer = newScorer(caller, factory, settings, now);
  const earlier = request && (await deps.scorers.findCreated(request, now));
  if (!earlier) {
    if (factory.management === "external_files")
      throw managedByFiles("Files outside this platform define this factory. Add the scorer there.");
    await requireReferences(deps, caller, factory, settings);
  }
  const { uid, id, at } =
    earlier ?? (await deps.scorers.create(scorer, scorerCreated(scorer, originOf(caller)), request));
  return { ...scorer, uid: as<ScorerUid>(uid), id, createdAt: new Date(at), updatedAt: new Date(at) };
}

const newScorer = (caller: Caller, factory: FactoryView, settings: ScorerSettings, now: Date): Omit<Scorer, "id"> => {
  const { type, uid } = actorOf(caller);
  return {
    ...settings,
    uid: newUid<ScorerUid>(),
    factoryUid: factory.uid,
    teamUid: factory.teamUid,
    slug: null,
    kind: "user",
    enabled: true,
    version: 1,
    creator: { type, uid },
    createdAt: now,
    updatedAt: now,
  };
};
