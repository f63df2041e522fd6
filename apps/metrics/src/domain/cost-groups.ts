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

/** Spend of one group in one period (an index). `creatorType`: only of groups by user. */
export type CostCell = {
  readonly period: number;
  readonly key: string;
  readonly creatorType: string;
  readonly spend: Spend;
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

/** Returns the sums of cells per group and in all. */
export function groupCosts(cells: readonly CostCell[], periodCount: number): CostGroups {
  const total = sumCells(cells, periodCount);
  const groups = [...Map.groupBy(cells, ({ key }) => key)]
    .map(([key, ofGroup]) => ({ key, creatorType: ofGroup[0]!.creatorType, ...sumCells(ofGroup, periodCount) }))
    .filter(({ spend }) => hasSpend(spend))
    .toSorted(inOrder);
  const coverage = cells.reduce((sum, cell) => addCoverage(sum, cell.coverage), NO_COVERAGE);
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
