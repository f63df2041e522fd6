import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { invalidArgument } from "@millwright/errors";
import { PERIOD_UNITS, periodsOf, resolveRange, type DateRange, type PeriodUnit } from "@millwright/periods";
import type { Scorer } from "../domain/scorer.ts";
import type { ResultStore } from "../store/result-store.ts";
import { findScorer, type ScorerScopeDeps } from "./scope.ts";

export type PeriodCount = { readonly passCount: number; readonly failCount: number; readonly costMicros: number };

export type GetScorerMetricsDeps = ScorerScopeDeps & {
  results: Pick<ResultStore, "countPeriods">;
  clock: Clock;
};

export type ScorerMetrics = {
  readonly scorer: Scorer;
  readonly asOf: Date;
  readonly range: DateRange;
  readonly unit: PeriodUnit;
  readonly periods: readonly (PeriodCount & { readonly label: string })[];
};

/**
 * Counts a scorer's current scores per period, by the time of the score. Scores of at least the present threshold pass.
 *
 * Errors: scorer_not_found · not_authorized · date_range_invalid · period_invalid · too_many_periods
 * (invalid_argument).
 */
export async function getScorerMetrics(
  deps: GetScorerMetricsDeps,
  caller: Caller,
  request: {
    factoryUid: string;
    scorerUid: string;
    start?: Date | undefined;
    end?: Date | undefined;
    groupByPeriod: string;
  },
): Promise<ScorerMetrics> {
  const { scorer } = await findScorer(deps, caller, request.factoryUid, request.scorerUid, "factory.view");
  const asOf = deps.clock.now();
  const unit = PERIOD_UNITS.find((known) => known === (request.groupByPeriod || "day"));
  if (!unit)
    throw invalidArgument(
      "period_invalid",
      `group_by_period must be one of ${PERIOD_UNITS.join(", ")} (got ${JSON.stringify(request.groupByPeriod)}).`,
    );
  const range = resolveRange(request, asOf);
  const periods = periodsOf(range, unit);
  const counts = await deps.results.countPeriods(scorer.uid, scorer.threshold, periods);
  return { scorer, asOf, range, unit, periods: periods.map(({ label }, index) => ({ label, ...counts[index]! })) };
}
