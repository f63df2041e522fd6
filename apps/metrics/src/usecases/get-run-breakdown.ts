import type { Caller } from "@millwright/caller";
import { periodWindow } from "../domain/period-window.ts";
import { groupRuns, readRunDimension, sumRuns, type RunDimension, type RunGroup } from "../domain/run-breakdown.ts";
import type { MetricsQueries } from "../store/metrics-queries.ts";
import { resolveScope, type RangeQuery, type RangeScope, type ResolveScopeDeps } from "./resolve-scope.ts";

export type GetRunBreakdownDeps = ResolveScopeDeps & Pick<MetricsQueries, "runCounts">;

export type RunBreakdown = {
  readonly scope: RangeScope;
  readonly dimension: RunDimension;
  /** Per period, as the series of the groups. */
  readonly total: readonly number[];
  readonly rootRuns: readonly number[];
  readonly groups: readonly RunGroup[];
};

/**
 * Counts the runs created in the range by one dimension. A source is the root's, so that grouping counts root runs
 * only.
 *
 * Errors: those of `resolveScope` · group_by_invalid.
 */
export async function getRunBreakdown(
  deps: GetRunBreakdownDeps,
  caller: Caller,
  query: RangeQuery,
  groupBy: string,
): Promise<RunBreakdown> {
  const scope = await resolveScope(deps, caller, query);
  const dimension = readRunDimension(groupBy);
  const window = periodWindow(scope.factory.uid, scope.range, scope.periods);
  const counts = await deps.runCounts.count(window, dimension);
  const roots = counts.filter(({ isRoot }) => isRoot);
  const counted = dimension === "source" ? roots : counts;
  const periods = window.starts.length;
  return {
    scope,
    dimension,
    total: sumRuns(counted, periods),
    rootRuns: sumRuns(roots, periods),
    groups: groupRuns(counted, dimension, periods),
  };
}
