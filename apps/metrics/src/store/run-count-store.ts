import type { Sql } from "@millwright/database";
import { splitDays, type PeriodWindow } from "../domain/period-window.ts";
import { SELF_IMPROVEMENT, type RunCount, type RunDimension } from "../domain/run-breakdown.ts";

const KEYS: Readonly<Record<RunDimension, string>> = {
  agent_type: `CASE WHEN source = '${SELF_IMPROVEMENT}' THEN '${SELF_IMPROVEMENT}' ELSE agent_type END`,
  status: "state",
  source: "source",
  root_vs_subrun: "CASE WHEN is_root THEN 'ROOT' ELSE 'SUBRUN' END",
  model: "model_id",
  harness: "harness",
};

/**
 * Counts runs by when they were created. Whole days are read as sums; run by run are only the parts of days at the
 * ends.
 */
export const runCountStore = (searches: Sql) => ({
  /** Returns how many runs have each key, per period, roots and sub-runs apart. */
  async count(window: PeriodWindow, dimension: RunDimension): Promise<RunCount[]> {
    const { before, days, after } = splitDays(window.range);
    const { rows } = await searches.query<{ period: number; key: string; is_root: boolean; runs: number }>(
      STATEMENTS[dimension],
      [window.factoryUid, window.starts, days.start, days.end, before.start, before.end, after.start, after.end],
    );
    return rows.map(({ is_root, ...row }) => ({ ...row, isRoot: is_root }));
  },
});

/** Days are summed before their periods are computed: there are many rows per day. */
const statement = (key: string): string =>
  `SELECT period, key, is_root, sum(runs)::bigint AS runs
     FROM (SELECT width_bucket(day::timestamp AT TIME ZONE 'UTC', $2::timestamptz[]) AS period, key, is_root, runs
             FROM (SELECT day, ${key} AS key, is_root, sum(runs) AS runs
                     FROM run_days
                    WHERE factory_uid = $1
                      AND day >= utc_day($3)
                      AND day < utc_day($4)
                    GROUP BY day, key, is_root) whole_days
           UNION ALL
           SELECT width_bucket(created_at, $2::timestamptz[]), ${key}, is_root, 1
             FROM (SELECT *, parent_run_uid IS NULL AS is_root
                     FROM run_facts
                    WHERE factory_uid = $1
                      AND created_at >= $5
                      AND created_at < $6
                   UNION ALL
                   SELECT *, parent_run_uid IS NULL
                     FROM run_facts
                    WHERE factory_uid = $1
                      AND created_at >= $7
                      AND created_at < $8) parts_of_days) counted
    GROUP BY period, key, is_root
   HAVING sum(runs) <> 0`;

const STATEMENTS: Readonly<Record<RunDimension, string>> = {
  agent_type: statement(KEYS.agent_type),
  status: statement(KEYS.status),
  source: statement(KEYS.source),
  root_vs_subrun: statement(KEYS.root_vs_subrun),
  model: statement(KEYS.model),
  harness: statement(KEYS.harness),
};
