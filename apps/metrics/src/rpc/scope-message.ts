import { create } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { metrics } from "@millwright/contracts";
import type { FactoryScope, RangeQuery, RangeScope } from "../usecases/resolve-scope.ts";

/** Reads the common query of a request. */
export const readRange = (range: metrics.Range | undefined): RangeQuery => ({
  factoryUid: range?.factoryUid ?? "",
  start: range?.startDate && timestampDate(range.startDate),
  end: range?.endDate && timestampDate(range.endDate),
  groupByPeriod: range?.groupByPeriod ?? "",
});

/** Returns the scope of a response without a range. */
export const factoryScopeMessage = ({ factory, asOf }: FactoryScope): metrics.Scope =>
  create(metrics.ScopeSchema, { teamUid: factory.teamUid, factoryUid: factory.uid, asOf: timestampFromDate(asOf) });

/** Returns the scope of a response. */
export const scopeMessage = ({ range, unit, periods, ...scope }: RangeScope): metrics.Scope => ({
  ...factoryScopeMessage(scope),
  startDate: timestampFromDate(range.start),
  endDate: timestampFromDate(range.end),
  groupByPeriod: unit ?? "",
  periodList: periods.map(({ label }) => label),
});
