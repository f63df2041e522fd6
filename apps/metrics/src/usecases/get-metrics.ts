import type { Caller } from "@millwright/caller";
import { periodWindow, type PeriodWindow } from "../domain/period-window.ts";
import { measureMerges, type Merges } from "../domain/merge-latency.ts";
import { mergeRepositories, sumCohorts, type OpenedCohort } from "../domain/pull-request-metrics.ts";
import { sumRuns } from "../domain/run-breakdown.ts";
import type { MetricsQueries } from "../store/metrics-queries.ts";
import { resolveScope, type RangeQuery, type RangeScope, type ResolveScopeDeps } from "./resolve-scope.ts";

export type GetMetricsDeps = ResolveScopeDeps & Pick<MetricsQueries, "runCounts" | "pullRequestCohorts" | "merges">;

/** Lists have one entry per period; without periods, one for the whole range. */
export type FactoryMetrics = {
  readonly scope: RangeScope;
  readonly runs: readonly number[];
  readonly pullRequests: readonly number[];
  readonly cohorts: readonly OpenedCohort[];
  readonly cohort: OpenedCohort;
  /** Merges in the factory's repositories by anyone. */
  readonly allMerges: readonly number[];
  readonly merges: Merges;
  readonly mergesByPeriod: readonly Merges[];
  readonly repositories: readonly string[];
};

/**
 * Returns what a factory did in the range. Runs count by creation, pull requests by first appearance, merged ones and
 * interactions by opening, the funnel, impact and latency by merge. {@link measureMerges} computes the medians.
 *
 * Errors: those of `resolveScope`.
 */
export async function getMetrics(deps: GetMetricsDeps, caller: Caller, query: RangeQuery): Promise<FactoryMetrics> {
  const scope = await resolveScope(deps, caller, query);
  const window = periodWindow(scope.factory.uid, scope.range, scope.periods);
  const [counts, pullRequests, opened, merged, { repositories, allMerges }] = await Promise.all([
    deps.runCounts.count(window, "root_vs_subrun"),
    deps.pullRequestCohorts.countFirstSeen(window),
    deps.pullRequestCohorts.openedCohorts(window),
    deps.merges.factoryMerges(window),
    readAllMerges(deps, scope, window),
  ]);
  const own = measureMerges(merged);
  const cohorts = opened.map((cohort, index) => ({
    ...cohort,
    merged: cohort.merged + merged.periods[index]!.unopened, // without an opening, a pull request counts by its merge
  }));
  return {
    scope,
    runs: sumRuns(counts, window.starts.length),
    pullRequests,
    cohorts,
    cohort: sumCohorts(cohorts),
    allMerges,
    merges: own.total,
    mergesByPeriod: own.periods,
    repositories,
  };
}

/** The factory's repositories are those of its definition and those in which its runs have produced pull requests. */
async function readAllMerges({ merges }: GetMetricsDeps, { factory }: RangeScope, window: PeriodWindow) {
  const repositories = mergeRepositories(factory.repositories, await merges.producedRepositories(factory.uid));
  return { repositories, allMerges: await merges.countMerges(window, factory.teamUid, repositories) };
}
