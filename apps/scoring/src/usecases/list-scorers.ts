import type { Caller } from "@millwright/caller";
import { clampPageSize } from "@millwright/paging";
import { outcomeOf, type Scorer } from "../domain/scorer.ts";
import type { ResultStore } from "../store/result-store.ts";
import type { ScorerStore } from "../store/scorer-store.ts";
import { findFactory, type ScopeDeps } from "./scope.ts";

/** A scorer with its statistics. `recentOutcomes` is ordered oldest first. */
export type ListedScorer = {
  readonly scorer: Scorer;
  readonly agentNames: ReadonlyMap<string, string>;
  readonly resultCount: number;
  readonly lastScoredAt: Date | null;
  readonly recentOutcomes: readonly ("pass" | "fail")[];
};

export type ListScorersDeps = ScopeDeps & {
  scorers: Pick<ScorerStore, "list">;
  results: Pick<ResultStore, "stats">;
  agents: {
    names(caller: Caller, teamUid: string, agentUids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  };
};

const OUTCOMES = { default: 50, max: 100 };

/**
 * Returns the scorers of a factory, ordered by name, with their statistics. Outcomes are determined by the present
 * threshold. Errors: factory_not_found · not_authorized.
 */
export async function listScorers(
  deps: ListScorersDeps,
  caller: Caller,
  request: { factoryUid: string; includeManaged: boolean; recentOutcomesLimit: number },
): Promise<ListedScorer[]> {
  const factory = await findFactory(deps, caller, request.factoryUid, "factory.view");
  const scorers = await deps.scorers.list(factory.uid, request);
  const [stats, agentNames] = await Promise.all([
    deps.results.stats(
      scorers.map(({ uid }) => uid),
      clampPageSize(request.recentOutcomesLimit, OUTCOMES),
    ),
    deps.agents.names(caller, factory.teamUid, [
      ...new Set(scorers.flatMap(({ agents }) => agents.map(({ agentUid }) => agentUid))),
    ]),
  ]);
  const byScorer = new Map(stats.map((each) => [each.scorerUid, each]));
  return scorers.map((scorer) => {
    const { resultCount = 0, lastScoredAt = null, recentScores = [] } = byScorer.get(scorer.uid) ?? {};
    return {
      scorer,
      agentNames,
      resultCount,
      lastScoredAt,
      recentOutcomes: recentScores.toReversed().map((score) => outcomeOf(score, scorer.threshold)),
    };
  });
}
