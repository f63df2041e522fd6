import type { Sql } from "@millwright/database";
import { boundsOf, columnsOf, type PeriodWindow } from "../domain/period-window.ts";
import type { OpenedCohort } from "../domain/pull-request-metrics.ts";

const params = (window: PeriodWindow): unknown[] => [window.factoryUid, ...columnsOf(boundsOf(window))];

/** The factory's pull requests by when they were first seen and by when they were opened. */
export const pullRequestCohortStore = (searches: Sql) => ({
  /** Returns how many pull requests a run named for the first time, per period. */
  async countFirstSeen(window: PeriodWindow): Promise<number[]> {
    const { rows } = await searches.query<{ pull_requests: number }>(FIRST_SEEN, params(window));
    return rows.map((row) => row.pull_requests);
  },

  /** Returns the cohorts of pull requests whose opening is known, per period of their opening. */
  async openedCohorts(window: PeriodWindow): Promise<OpenedCohort[]> {
    const { rows } = await searches.query<OpenedCohort>(OPENED, params(window));
    return rows;
  },
});

/** Each period is read from the index by itself, so that no row is sorted or hashed. */
const PERIODS = "unnest($2::timestamptz[], $3::timestamptz[]) WITH ORDINALITY AS period (starts_at, ends_at, number)";

const FIRST_SEEN = `
  SELECT (SELECT count(*)
            FROM factory_pull_requests
           WHERE factory_uid = $1
             AND first_seen_at >= starts_at
             AND first_seen_at < ends_at) AS pull_requests
    FROM ${PERIODS}
   ORDER BY number`;

const OPENED = `
  SELECT opened.*
    FROM ${PERIODS}
   CROSS JOIN LATERAL (
         SELECT count(merged_at) AS merged, coalesce(sum(human_total), 0)::bigint AS interactions, count(human_total) AS measured
           FROM factory_pull_requests
          WHERE factory_uid = $1
            AND opened_at >= starts_at
            AND opened_at < ends_at) opened
   ORDER BY number`;
