import { hasSpend, NO_SPEND, totalMicros, type Spend } from "./spend.ts";
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
export type CostCell = Spend & { readonly period: number };

/**
 * What a group spent in its periods with entries; a period may have several cells. `creatorType`: only of groups by
 * user.
 */
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
  const groups = grouped.map(({ key, creatorType, cells }) => ({ key, creatorType, ...sumCells(cells, periodCount) }));
  const [total, totalSeries] = [noSpend(), seriesOf(periodCount)];
  for (const { spend, series } of groups) {
    addTo(total, spend);
    for (let period = 0; period < periodCount; period++) addTo(totalSeries[period]!, series[period]!);
  }
  const coverage = grouped.reduce((sum, group) => addCoverage(sum, group.coverage), NO_COVERAGE);
  return {
    ...{ total, totalSeries, coverage },
    groups: groups.filter(({ spend }) => hasSpend(spend)).toSorted(inOrder),
  };
}

/** Sums are added in place: a year by day has tens of thousands of cells. */
type Sum = { -readonly [Component in keyof Spend]: Spend[Component] };

const noSpend = (): Sum => ({ ...NO_SPEND });
const seriesOf = (periodCount: number): Sum[] => Array.from({ length: periodCount }, noSpend);

function addTo(sum: Sum, { inferenceMicros, computeMicros, platformMicros }: Spend): void {
  sum.inferenceMicros += inferenceMicros;
  sum.computeMicros += computeMicros;
  sum.platformMicros += platformMicros;
}

function sumCells(cells: readonly CostCell[], periodCount: number): { spend: Spend; series: Spend[] } {
  const [spend, series] = [noSpend(), seriesOf(periodCount)];
  for (const cell of cells) {
    addTo(spend, cell);
    if (periodCount > 0) addTo(series[cell.period]!, cell);
  }
  return { spend, series };
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
