import { actorOf, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { newUid } from "@millwright/ids";
import type { Scorer, ScorerUid } from "../domain/scorer.ts";
import { CORRECTNESS_LABELS } from "../domain/task-rule.ts";
import { originOf } from "../events/origin.ts";
import { scorerCreated, scorerUpdated } from "../events/scorer-events.ts";
import type { ManagedScorerStore } from "../store/managed-scorer-store.ts";
import type { FactoryView } from "./scope.ts";

export type ManagedScorerDeps = {
  managedScorers: Pick<ManagedScorerStore, "ensure">;
  catalog: { models(caller: Caller, teamUid: string): Promise<{ defaultModelId: string }> };
  clock: Clock;
};

/** When a trial is judged, the success criteria of its task replace this prompt. */
const SCORING_PROMPT =
  "Decide whether the run meets the success criteria of its benchmark task. The prompt of the task is context only.";

/**
 * Returns the scorer that judges the correctness of the factory's benchmark tasks. Creates it on the first launch. Its
 * model is the factory's default model for scoring, otherwise the platform's default.
 */
export async function ensureManagedScorer(
  deps: ManagedScorerDeps,
  caller: Caller,
  factory: FactoryView,
): Promise<Scorer> {
  const modelId = factory.scoringDefaultModel ?? (await deps.catalog.models(caller, factory.teamUid)).defaultModelId;
  const now = deps.clock.now();
  const { type, uid } = actorOf(caller);
  const initial: Omit<Scorer, "id"> = {
    uid: newUid<ScorerUid>(),
    factoryUid: factory.uid,
    teamUid: factory.teamUid,
    slug: null,
    kind: "benchmark_task_correctness",
    name: "Task correctness",
    description: "Judges whether a benchmark trial meets the success criteria of its task.",
    scopeMode: "all_agents",
    agents: [],
    labels: CORRECTNESS_LABELS,
    threshold: 0.5,
    scoringPrompt: SCORING_PROMPT,
    modelId,
    samplingRate: 0,
    agentConfig: null,
    rule: null,
    selfImprovementEnabled: false,
    enabled: false,
    version: 1,
    creator: { type, uid },
    createdAt: now,
    updatedAt: now,
  };
  return deps.managedScorers.ensure(
    initial,
    (scorer) => scorerCreated(scorer, originOf(caller)),
    (scorer) => {
      if (scorer.modelId === modelId) return undefined;
      const next = { ...scorer, modelId, version: scorer.version + 1, updatedAt: now };
      return { next, event: scorerUpdated(next, originOf(caller), ["model_id"]) };
    },
  );
}
