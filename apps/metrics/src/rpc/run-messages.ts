import type { MessageInitShape } from "@bufbuild/protobuf";
import type { metrics } from "@millwright/contracts";
import type { LatencyStage, Merges } from "../domain/merge-latency.ts";
import { meanInteractions } from "../domain/pull-request-metrics.ts";
import type { FactoryMetrics } from "../usecases/get-metrics.ts";
import type { RunBreakdown } from "../usecases/get-run-breakdown.ts";
import type { RangeScope } from "../usecases/resolve-scope.ts";
import { scopeMessage } from "./scope-message.ts";

/** Returns the message of metrics. */
export function toMetricsMessage(result: FactoryMetrics): MessageInitShape<typeof metrics.GetMetricsResponseSchema> {
  const { scope, cohorts, merges, mergesByPeriod, allMerges, repositories } = result;
  const funnel = (own: Merges, totalMerged: number) => toFunnel(own, totalMerged, repositories);
  return {
    scope: scopeMessage(scope),
    runCount: toCount(scope, result.runs),
    prCount: toCount(scope, result.pullRequests),
    mergedPrCount: toCount(
      scope,
      cohorts.map(({ merged }) => merged),
    ),
    averageHumanInteractionsPerPr: {
      mean: toMeasure(meanInteractions(result.cohort)),
      series: toSeries(
        scope,
        cohorts.map((cohort) => toMeasure(meanInteractions(cohort))),
      ),
    },
    autonomyFunnel: funnel(merges, sum(allMerges)),
    autonomyFunnelSeries: toSeries(
      scope,
      mergesByPeriod.map((own, index) => funnel(own, allMerges[index]!)),
    ),
    impact: toImpact(merges),
    impactSeries: toSeries(scope, mergesByPeriod.map(toImpact)),
    prLatency: toLatency(merges),
    prLatencySeries: toSeries(scope, mergesByPeriod.map(toLatency)),
  };
}

/** Returns the message of a run breakdown. */
export const toRunBreakdownMessage = (
  result: RunBreakdown,
): MessageInitShape<typeof metrics.GetRunBreakdownResponseSchema> => ({
  scope: scopeMessage(result.scope),
  groupBy: result.dimension,
  total: toCount(result.scope, result.total),
  rootRunCount: toCount(result.scope, result.rootRuns),
  groups: result.groups.map(({ key, label, total, series }) => ({
    key,
    label,
    total: BigInt(total),
    series: toSeries(result.scope, series.map(BigInt)),
  })),
});

/** Only responses to requests with group_by_period have series. */
const toSeries = <T>({ unit }: RangeScope, values: readonly T[]): T[] => (unit ? [...values] : []);

const toCount = (scope: RangeScope, values: readonly number[]): MessageInitShape<typeof metrics.CountSchema> => ({
  total: BigInt(sum(values)),
  series: toSeries(scope, values.map(BigInt)),
});

const toMeasure = (value: number | null): MessageInitShape<typeof metrics.MeasureSchema> =>
  value === null ? {} : { value };

const toFunnel = (
  own: Merges,
  totalMerged: number,
  repos: readonly string[],
): MessageInitShape<typeof metrics.AutonomyFunnelSchema> => ({
  totalMerged: BigInt(totalMerged),
  factoryMerged: BigInt(own.merged),
  factoryMergedObserved: BigInt(own.observed),
  mergedWithoutHumanCodeChange: BigInt(own.withoutHumanCodeChange),
  repos: [...repos],
});

const toImpact = ({ additions, deletions, merged, sized }: Merges): MessageInitShape<typeof metrics.ImpactSchema> => ({
  additions: BigInt(additions),
  deletions: BigInt(deletions),
  mergedPrCount: BigInt(merged),
  measuredPrCount: BigInt(sized),
});

const toLatency = (own: Merges): MessageInitShape<typeof metrics.PullRequestLatencySchema> => ({
  mergedPrCount: BigInt(own.merged),
  kickoffToPr: toStage(own.kickoffToPr),
  prToFirstReview: toStage(own.prToFirstReview),
  firstReviewToMerge: toStage(own.firstReviewToMerge),
  kickoffToMerge: toStage(own.kickoffToMerge),
});

const toStage = ({ medianSeconds, measured }: LatencyStage): MessageInitShape<typeof metrics.LatencyStageSchema> => ({
  medianSeconds: medianSeconds ?? undefined,
  measuredPrCount: BigInt(measured),
});

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
