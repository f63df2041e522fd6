import type { Caller } from "@millwright/caller";
import { periodWindow } from "../domain/period-window.ts";
import { sumPullRequestCosts, type PullRequestCostSums } from "../domain/pull-request-cost.ts";
import { PULL_REQUEST_SIZES, type PullRequestSize } from "../domain/pull-request-size.ts";
import type { PullRequestCostDeps } from "./get-cost-per-pull-request.ts";
import { resolveScope, type RangeQuery, type RangeScope } from "./resolve-scope.ts";

export type CostBySize = {
  readonly scope: RangeScope;
  readonly prCount: number;
  /** Of these, how many have known line counts. Only they are in a bucket. */
  readonly sizedPrCount: number;
  /** One per size, from small to large. */
  readonly buckets: readonly (PullRequestCostSums & { readonly size: PullRequestSize })[];
};

/**
 * Returns the spend attributed to the pull requests first seen in the range, per size.
 *
 * Errors: those of `resolveScope`.
 */
export async function getCostBySize(deps: PullRequestCostDeps, caller: Caller, query: RangeQuery): Promise<CostBySize> {
  const scope = await resolveScope(deps, caller, query);
  const cells = await deps.costs.listPullRequestCosts(periodWindow(scope.factory.uid, scope.range, scope.periods));
  const count = (counted: typeof cells): number => sumPullRequestCosts(counted, 0).cost.prCount;
  return {
    scope,
    prCount: count(cells),
    sizedPrCount: count(cells.filter(({ size }) => size !== undefined)),
    buckets: PULL_REQUEST_SIZES.map((size) => {
      const ofSize = cells.filter((cell) => cell.size === size);
      return { size, ...sumPullRequestCosts(ofSize, scope.periods.length) };
    }),
  };
}
