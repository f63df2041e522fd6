import type { z } from "zod";
import type { metrics } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { toDollars } from "@millwright/money";
import { isoTime } from "../formats/json-values.ts";
import type { CostBreakdown, CostBySize, CostPerPullRequest, FactoryMetrics, RunBreakdown } from "./metrics-schemas.ts";

/** Returns the scope of a record without a date range. */
export const aboutRecord = ({ teamUid, factoryUid, asOf }: metrics.Scope) => ({
  team_uid: teamUid,
  factory_uid: factoryUid,
  as_of: isoTime(asOf!),
});

/** Returns the scope of a record with its date range. */
export const rangedRecord = (scope: metrics.Scope) => ({
  ...aboutRecord(scope),
  start_date: isoTime(scope.startDate!),
  end_date: isoTime(scope.endDate!),
});

const periodicRecord = (scope: metrics.Scope) => ({
  ...rangedRecord(scope),
  group_by_period: (scope.groupByPeriod || null) as "day" | null,
  ...(isPeriodic(scope) && { period_list: scope.periodList }),
});

const isPeriodic = ({ groupByPeriod }: metrics.Scope): boolean => groupByPeriod !== "";
/** Returns a series, or nothing if the query had no period. */
const seriesOf = <T, R>(scope: metrics.Scope, series: readonly T[], record: (entry: T) => R): { series?: R[] } =>
  isPeriodic(scope) ? { series: series.map(record) } : {};

const countRecord = (scope: metrics.Scope, { total, series }: metrics.Count) => ({
  total: Number(total),
  ...seriesOf(scope, series, Number),
});
const measureRecord = (measure: metrics.Measure | undefined): number | null => measure?.value ?? null;

const funnelRecord = (funnel: metrics.AutonomyFunnel) => ({
  total_merged: Number(funnel.totalMerged),
  factory_merged: Number(funnel.factoryMerged),
  factory_merged_observed: Number(funnel.factoryMergedObserved),
  merged_without_human_code_change: Number(funnel.mergedWithoutHumanCodeChange),
  rate: ratio(Number(funnel.mergedWithoutHumanCodeChange), Number(funnel.factoryMergedObserved)),
  repos: funnel.repos,
});

const impactRecord = (impact: metrics.Impact) => ({
  additions: Number(impact.additions),
  deletions: Number(impact.deletions),
  merged_pr_count: Number(impact.mergedPrCount),
  measured_pr_count: Number(impact.measuredPrCount),
});

const stageRecord = (stage: metrics.LatencyStage | undefined) => ({
  median_seconds: stage?.medianSeconds ?? null,
  measured_pr_count: Number(stage?.measuredPrCount ?? 0),
});
const latencyRecord = (latency: metrics.PullRequestLatency) => ({
  merged_pr_count: Number(latency.mergedPrCount),
  kickoff_to_pr: stageRecord(latency.kickoffToPr),
  pr_to_first_review: stageRecord(latency.prToFirstReview),
  first_review_to_merge: stageRecord(latency.firstReviewToMerge),
  kickoff_to_merge: stageRecord(latency.kickoffToMerge),
});

export function metricsRecord(found: metrics.GetMetricsResponse): z.input<typeof FactoryMetrics> {
  const scope = found.scope!;
  const interactions = found.averageHumanInteractionsPerPr!;
  return {
    ...periodicRecord(scope),
    run_count: countRecord(scope, found.runCount!),
    pr_count: countRecord(scope, found.prCount!),
    merged_pr_count: countRecord(scope, found.mergedPrCount!),
    average_human_interactions_per_pr: {
      mean: measureRecord(interactions.mean),
      ...seriesOf(scope, interactions.series, measureRecord),
    },
    autonomy_funnel: {
      ...funnelRecord(found.autonomyFunnel!),
      ...seriesOf(scope, found.autonomyFunnelSeries, funnelRecord),
    },
    impact: { ...impactRecord(found.impact!), ...seriesOf(scope, found.impactSeries, impactRecord) },
    pr_latency: { ...latencyRecord(found.prLatency!), ...seriesOf(scope, found.prLatencySeries, latencyRecord) },
  };
}

export function runBreakdownRecord(found: metrics.GetRunBreakdownResponse): z.input<typeof RunBreakdown> {
  const scope = found.scope!;
  return {
    ...periodicRecord(scope),
    group_by: found.groupBy as "status",
    total: countRecord(scope, found.total!),
    root_run_count: countRecord(scope, found.rootRunCount!),
    groups: found.groups.map(({ key, label, total, series }) => ({
      key,
      ...omitUndefined({ label: label || undefined }),
      total: Number(total),
      ...seriesOf(scope, series, Number),
    })),
  };
}

/**
 * Returns spend in dollars. The total is converted from the exact sum of micro-dollars, not added from the converted
 * parts.
 */
export const dollarsRecord = (spend: metrics.Spend | undefined) => ({
  inference: toDollars(spend?.inferenceMicros ?? 0n),
  compute: toDollars(spend?.computeMicros ?? 0n),
  platform: toDollars(spend?.platformMicros ?? 0n),
  total: toDollars(totalOf(spend)),
});

const totalOf = (spend: metrics.Spend | undefined): bigint =>
  spend === undefined ? 0n : spend.inferenceMicros + spend.computeMicros + spend.platformMicros;

const ratio = (part: number, whole: number): number | null => (whole === 0 ? null : part / whole);
/** Returns the mean in dollars per pull request, or null without pull requests. */
const meanOf = (micros: bigint, count: bigint): number | null => ratio(Number(micros), Number(count) * 1_000_000);

const costRecord = ({ prCount, spend }: metrics.PullRequestCost) => ({
  pr_count: Number(prCount),
  dollars: dollarsRecord(spend),
  mean: meanOf(totalOf(spend), prCount),
  inference_mean: meanOf(spend?.inferenceMicros ?? 0n, prCount),
  compute_mean: meanOf(spend?.computeMicros ?? 0n, prCount),
  platform_mean: meanOf(spend?.platformMicros ?? 0n, prCount),
});

export const costPerPullRequestRecord = ({
  scope,
  cost,
  series,
}: metrics.GetCostPerPullRequestResponse): z.input<typeof CostPerPullRequest> => ({
  ...periodicRecord(scope!),
  ...costRecord(cost!),
  ...seriesOf(scope!, series, costRecord),
});

export function costBreakdownRecord(found: metrics.GetCostBreakdownResponse): z.input<typeof CostBreakdown> {
  const scope = found.scope!;
  return {
    ...periodicRecord(scope),
    group_by: found.groupBy as "source",
    total: { ...dollarsRecord(found.total), ...seriesOf(scope, found.totalSeries, dollarsRecord) },
    groups: found.groups.map(({ key, label, deleted, photoUrl, spend, series }) => ({
      key,
      label: label || key,
      deleted,
      ...omitUndefined({ photo_url: photoUrl }),
      dollars: dollarsRecord(spend),
      ...seriesOf(scope, series, dollarsRecord),
    })),
    coverage: {
      model_calls: Number(found.coverage?.modelCalls ?? 0),
      priced_model_calls: Number(found.coverage?.pricedModelCalls ?? 0),
      compute_intervals: Number(found.coverage?.computeIntervals ?? 0),
      priced_compute_intervals: Number(found.coverage?.pricedComputeIntervals ?? 0),
    },
  };
}

export const costBySizeRecord = ({
  scope,
  prCount,
  sizedPrCount,
  buckets,
}: metrics.GetCostBySizeResponse): z.input<typeof CostBySize> => ({
  ...periodicRecord(scope!),
  pr_count: Number(prCount),
  sized_pr_count: Number(sizedPrCount),
  buckets: buckets.map(({ size, cost, series }) => ({
    size: size as "S",
    pr_count: Number(cost!.prCount),
    mean: costRecord(cost!).mean,
    ...seriesOf(scope!, series, (entry) => costRecord(entry).mean),
  })),
});
