import * as v from "valibot";
import { PERIODS, type RangeSearch } from "../../ui/periods.ts";
import { searchChoice, searchText } from "../../ui/search-params.ts";

export const RUN_DIMENSIONS = ["status", "agent_type", "source", "root_vs_subrun", "model", "harness"] as const;
export const COST_DIMENSIONS = ["source", "user", "agent", "model"] as const;

const range = {
  /** Uid of the factory. Default: the first one. */
  factory: searchText,
  /** Start of the range, inclusive, UTC. Default: 30 days before its end. */
  from: searchText,
  /** End of the range, exclusive, UTC. Default: now. */
  before: searchText,
  /** Length of the periods. Default: a day. */
  period: searchChoice(...PERIODS),
};

export const metricsSearch = v.object({ ...range, by: searchChoice(...RUN_DIMENSIONS) });
export const costsSearch = v.object({ ...range, by: searchChoice(...COST_DIMENSIONS) });

/** Returns the range without periods, as query parameters of the metrics API. */
export const rangeOf = ({ from, before }: RangeSearch) => ({ start_date: from, end_date: before });

/** Returns the range with its periods, as query parameters of the metrics API. */
export const periodsOf = (search: RangeSearch) => ({
  ...rangeOf(search),
  group_by_period: search.period ?? ("day" as const),
});
