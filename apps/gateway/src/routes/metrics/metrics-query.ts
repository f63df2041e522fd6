import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { z } from "zod";
import { omitUndefined } from "@millwright/json";
import { PERIOD_UNITS } from "@millwright/periods";
import { instant, queryChoice } from "../../rest/index.ts";

/** Date range of metrics and cost queries. */
export const RangeQuery = z.object({
  start_date: instant().optional().meta({ description: "Inclusive; default: 30 days before end_date." }),
  end_date: instant().optional().meta({ description: "Exclusive; default: now." }),
});

/** Date range and period of queries that can return series. */
export const PeriodQuery = RangeQuery.extend({
  group_by_period: queryChoice(PERIOD_UNITS)
    .optional()
    .meta({ description: "Adds a series per period, UTC; weeks start on Sunday. At most 365 periods." }),
});

type RangeInput = z.output<typeof RangeQuery> & Partial<z.output<typeof PeriodQuery>>;

/** Returns the range of a request to the metrics service. */
export const rangeOf = (factoryUid: string, query: RangeInput) => ({
  factoryUid,
  ...omitUndefined({
    startDate: query.start_date && timestampFromDate(query.start_date),
    endDate: query.end_date && timestampFromDate(query.end_date),
  }),
  groupByPeriod: query.group_by_period ?? "",
});
