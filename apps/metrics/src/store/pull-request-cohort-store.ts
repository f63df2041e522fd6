import type { Sql } from "@millwright/database";
import { alignToPeriods, type PeriodWindow } from "../domain/period-window.ts";
import { NO_COHORT, type OpenedCohort } from "../domain/pull-request-metrics.ts";

const params = ({ factoryUid, starts, range }: PeriodWindow): unknown[] => [factoryUid, starts, range.start, range.end];

/** The factory's pull requests by when they were first seen and by when they were opened. */
export const pullRequestCohortStore = (searches: Sql) => ({
  /** Returns how many pull requests a run named for the first time, per period. */
  async countFirstSeen(window: PeriodWindow): Promise<number[]> {
    const { rows } = await searches.query<{ period: number; pull_requests: number }>(FIRST_SEEN, params(window));
    return alignToPeriods(window, rows, (row) => row.pull_requests, 0);
  },

  /** Returns the cohorts of pull requests, per period of their opening. */
  async openedCohorts(window: PeriodWindow): Promise<OpenedCohort[]> {
    const { rows } = await searches.query<OpenedCohort & { period: number }>(OPENED, params(window));
    return alignToPeriods(
      window,
      rows,
      ({ merged, interactions, measured }) => ({ merged, interactions, measured }),
      NO_COHORT,
    );
  },
});

const FIRST_SEEN = `
  SELECT width_bucket(first_seen_at, $2::timestamptz[]) AS period, count(*) AS pull_requests
    FROM factory_pull_requests
   WHERE factory_uid = $1
     AND first_seen_at >= $3
     AND first_seen_at < $4
   GROUP BY period`;

const OPENED = `
  SELECT period,
         count(*) FILTER (WHERE is_merged) AS merged,
         coalesce(sum(human_total), 0)::bigint AS interactions,
         count(human_total) AS measured
    FROM (SELECT width_bucket(opened_at, $2::timestamptz[]) AS period, merged_at IS NOT NULL AS is_merged, human_total
            FROM factory_pull_requests
           WHERE factory_uid = $1
             AND opened_at >= $3
             AND opened_at < $4
          UNION ALL
          SELECT width_bucket(merged_at, $2::timestamptz[]), true, NULL -- its opening was not observed
            FROM factory_pull_requests
           WHERE factory_uid = $1
             AND opened_at IS NULL
             AND merged_at >= $3
             AND merged_at < $4) cohort
   GROUP BY period`;
