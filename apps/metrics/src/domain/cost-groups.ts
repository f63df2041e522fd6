import { addSpend, hasSpend, NO_SPEND, totalMicros, type Spend } from "./spend.ts";
import { UNKNOWN_KEY } from "./unknown-key.ts";

export const COST_GROUPINGS = ["source", "user", "agent", "model"] as const;
export type CostGrouping = (typeof COST_GROUPINGS)[number];

/** What spend is known from. Entries without a price are in no sum. */
export type CostCoverage = {
  readonly modelCalls: number;
  readonly pricedModelCalls: number;
  readonly computeIntervals: number;
  readonly pricedComputeIntervals: number;
};

/** Spend in one period (an index). */
export type CostCell = { readonly period: number; readonly spend: Spend };

/** What a group spent in its periods with entries. `creatorType`: only of groups by user. */
export type GroupedCells = {
  readonly key: string;
  readonly creatorType: string;
  readonly cells: readonly CostCell[];
  readonly coverage: CostCoverage;
};

export type CostGroup = {
  readonly key: string;
  readonly creatorType: string;
  readonly spend: Spend;
  /** One per period. */
  readonly series: readonly Spend[];
};

export type CostGroups = {
  readonly total: Spend;
  readonly totalSeries: readonly Spend[];
  /** Groups with spend: most expensive first, ties by key, UNKNOWN last. */
  readonly groups: readonly CostGroup[];
  readonly coverage: CostCoverage;
};

/** Returns the sums of the cells of groups, per group and in all. */
export function groupCosts(grouped: readonly GroupedCells[], periodCount: number): CostGroups {
  const total = sumCells(
    grouped.flatMap(({ cells }) => cells),
    periodCount,
  );
  const groups = grouped
    .map(({ key, creatorType, cells }) => ({ key, creatorType, ...sumCells(cells, periodCount) }))
    .filter(({ spend }) => hasSpend(spend))
    .toSorted(inOrder);
  const coverage = grouped.reduce((sum, group) => addCoverage(sum, group.coverage), NO_COVERAGE);
  return { total: total.spend, totalSeries: total.series, groups, coverage };
}

function sumCells(cells: readonly CostCell[], periodCount: number): { spend: Spend; series: Spend[] } {
  const series = Array.from({ length: periodCount }, () => NO_SPEND);
  let sum = NO_SPEND;
  for (const { period, spend } of cells) {
    sum = addSpend(sum, spend);
    if (periodCount > 0) series[period] = addSpend(series[period]!, spend);
  }
  return { spend: sum, series };
}

function inOrder(a: CostGroup, b: CostGroup): number {
  if ((a.key === UNKNOWN_KEY) !== (b.key === UNKNOWN_KEY)) return a.key === UNKNOWN_KEY ? 1 : -1;
  const difference = totalMicros(b.spend) - totalMicros(a.spend);
  if (difference !== 0n) return difference > 0n ? 1 : -1;
  return a.key < b.key ? -1 : 1;
}

const NO_COVERAGE: CostCoverage = {
  modelCalls: 0,
  pricedModelCalls: 0,
  computeIntervals: 0,
  pricedComputeIntervals: 0,
};

const addCoverage = (a: CostCoverage, b: CostCoverage): CostCoverage => ({
  modelCalls: a.modelCalls + b.modelCalls,
  pricedModelCalls: a.pricedModelCalls + b.pricedModelCalls,
  computeIntervals: a.computeIntervals + b.computeIntervals,
  pricedComputeIntervals: a.pricedComputeIntervals + b.pricedComputeIntervals,
});
