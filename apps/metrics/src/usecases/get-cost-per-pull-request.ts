import type { Caller } from "@millwright/caller";
import { periodWindow } from "../domain/period-window.ts";
import { sumPullRequestCosts, type PullRequestCostSums } from "../domain/pull-request-cost.ts";
import type { MetricsQueries } from "../store/metrics-queries.ts";
import { resolveScope, type RangeQuery, type RangeScope, type ResolveScopeDeps } from "./resolve-scope.ts";

export type PullRequestCostDeps = ResolveScopeDeps & {
  readonly costs: Pick<MetricsQueries["costs"], "listPullRequestCosts">;
};

/**
 * Returns the whole spend attributed to the pull requests first seen in the range, whenever it occurred. Trees without
 * a pull request are not in it.
 *
 * Errors: those of `resolveScope`.
 */
export async function getCostPerPullRequest(
  deps: PullRequestCostDeps,
  caller: Caller,
  query: RangeQuery,
): Promise<PullRequestCostSums & { readonly scope: RangeScope }> {
  const scope = await resolveScope(deps, caller, query);
  const cells = await deps.costs.listPullRequestCosts(periodWindow(scope.factory.uid, scope.range, scope.periods));
  return { scope, ...sumPullRequestCosts(cells, scope.periods.length) };
}
