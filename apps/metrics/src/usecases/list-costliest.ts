import type { Caller } from "@millwright/caller";
import { splitByModel, type ModelSpend } from "../domain/model-spend.ts";
import type { CostlyPullRequest, KickoffRun } from "../store/costliest-store.ts";
import type { MetricsQueries } from "../store/metrics-queries.ts";
import { nameCreators, type CreatorRef, type NamedCreator, type PrincipalDeps } from "./name-creators.ts";
import { pageSizeOf } from "./page-size.ts";
import { resolveScope, type RangeQuery, type RangeScope, type ResolveScopeDeps } from "./resolve-scope.ts";

export type ListCostliestDeps = ResolveScopeDeps &
  PrincipalDeps & {
    readonly costs: Pick<MetricsQueries["costs"], "listCostliest">;
  };

export type CostedPullRequest = {
  readonly record: CostlyPullRequest["record"];
  readonly models: readonly ModelSpend[];
  readonly kickoffRun: KickoffRun | undefined;
  readonly creator: (CreatorRef & NamedCreator) | undefined;
};

const LIMITS = { default: 20, max: 50 };

/**
 * Returns the pull requests first seen in the range that cost most, most expensive first, ties by URL. What no code
 * host has reported is null.
 *
 * Errors: those of `resolveScope` · limit_invalid (invalid_argument).
 */
export async function listCostliest(
  deps: ListCostliestDeps,
  caller: Caller,
  query: RangeQuery,
  limit: number,
): Promise<{ readonly scope: RangeScope; readonly data: readonly CostedPullRequest[] }> {
  const scope = await resolveScope(deps, caller, { ...query, groupByPeriod: "" });
  const found = await deps.costs.listCostliest({
    factoryUid: scope.factory.uid,
    range: scope.range,
    limit: pageSizeOf(limit, LIMITS),
  });
  const creators = found.flatMap(({ kickoffRun }) => creatorOf(kickoffRun) ?? []);
  const names = await nameCreators(deps, caller, scope.factory.teamUid, creators);
  const data = found.map(({ record, shares, kickoffRun }) => {
    const creator = creatorOf(kickoffRun);
    return {
      record,
      models: splitByModel(shares),
      kickoffRun,
      creator: creator && { ...creator, ...names.get(creator.uid)! },
    };
  });
  return { scope, data };
}

const creatorOf = (run: KickoffRun | undefined): CreatorRef | undefined =>
  run && run.creatorUid !== "" ? { type: run.creatorType, uid: run.creatorUid } : undefined;
