import { addSpend, NO_SPEND, type Spend } from "./spend.ts";
import type { PullRequestSize } from "./pull-request-size.ts";

/** Pull requests and the whole spend that is attributed to them. */
export type PullRequestCost = { readonly prCount: number; readonly spend: Spend };

/**
 * Pull requests of one size that were first seen in one period (an index); without a size: their line counts are not
 * known.
 */
export type PullRequestCostCell = PullRequestCost & {
  readonly period: number;
  readonly size: PullRequestSize | undefined;
};

export type PullRequestCostSums = {
  readonly cost: PullRequestCost;
  /** One per period. */ readonly series: readonly PullRequestCost[];
};

/** Returns the sum of cells, in all and per period. */
export function sumPullRequestCosts(cells: readonly PullRequestCostCell[], periodCount: number): PullRequestCostSums {
  const series = Array.from({ length: periodCount }, () => NO_PULL_REQUESTS);
  let cost = NO_PULL_REQUESTS;
  for (const cell of cells) {
    cost = add(cost, cell);
    if (periodCount > 0) series[cell.period] = add(series[cell.period]!, cell);
  }
  return { cost, series };
}

const NO_PULL_REQUESTS: PullRequestCost = { prCount: 0, spend: NO_SPEND };

const add = (a: PullRequestCost, b: PullRequestCost): PullRequestCost => ({
  prCount: a.prCount + b.prCount,
  spend: addSpend(a.spend, b.spend),
});
