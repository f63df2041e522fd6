import type { Database } from "@millwright/database";
import type { CostCell, CostGrouping, GroupedCells } from "../domain/cost-groups.ts";
import { splitDays, type PeriodWindow } from "../domain/period-window.ts";
import { UNKNOWN_KEY } from "../domain/unknown-key.ts";

/** Spend by the time it occurred. */
export function costBreakdownStore(database: Database) {
  return {
    /**
     * Returns the spend per group and period. Whole days are read from their sums and partial days from the ledger, in one statement, so that both
     * are of the same time.
     */
    async listCostCells({ factoryUid, range, starts }: PeriodWindow, grouping: CostGrouping): Promise<GroupedCells[]> {
      const { before, days, after } = splitDays(range);
      const { rows } = await database.searches.query<GroupRow>(LIST_CELLS[grouping], [
        factoryUid,
        dayOf(days.start),
        dayOf(days.end),
        before.start,
        before.end,
        after.start,
        after.end,
        starts.map(dayOf),
      ]);
      return rows.map(toGroupedCells);
    },

    /** Returns the newest names of agents of a factory's runs. Agents without a name are left out. */
    async newestAgentNames(factoryUid: string, agentUids: readonly string[]): Promise<ReadonlyMap<string, string>> {
      if (agentUids.length === 0) return new Map();
      const { rows } = await database.searches.query<{ uid: string; name: string }>(
        `SELECT asked.uid, newest.name
           FROM unnest($2::text[]) AS asked (uid)
          CROSS JOIN LATERAL (SELECT agent_name AS name
                                FROM run_facts
                               WHERE factory_uid = $1 AND agent_uid = asked.uid AND agent_name <> ''
                               ORDER BY created_at DESC
                               LIMIT 1) newest`,
        [factoryUid, agentUids],
      );
      return new Map(rows.map(({ uid, name }) => [uid, name]));
    },
  };
}

type GroupRow = {
  key: string;
  creator_type: string;
  model_calls: number;
  unpriced_calls: number;
  intervals: number;
  unpriced_intervals: number;
  cells: string;
};

const dayOf = (time: Date): string => time.toISOString().slice(0, 10);

const SUMS =
  "inference_micros, compute_micros, platform_micros, model_calls, unpriced_model_calls, compute_intervals, unpriced_compute_intervals";

const micros = (component: string): string =>
  `coalesce(sum(micros) FILTER (WHERE component = '${component}'), 0)::bigint`;

const unpricedChange = (component: string): string =>
  `coalesce(sum(unpriced_change) FILTER (WHERE component = '${component}'), 0)`;

/** Entries of a partial day in the shape of daily sums. */
const ledgerSums = (key: string, creatorType: string, from: string, to: string): string => `
          SELECT utc_day(occurred_at), ${key}, ${creatorType},
                 ${micros("inference")}, ${micros("compute")}, ${micros("platform")},
                 count(*) FILTER (WHERE kind = 'model_call'),
                 count(*) FILTER (WHERE kind = 'model_call' AND micros IS NULL) + ${unpricedChange("inference")},
                 count(*) FILTER (WHERE kind = 'compute_interval'),
                 count(*) FILTER (WHERE kind = 'compute_interval' AND micros IS NULL) + ${unpricedChange("compute")}
            FROM ledger_entries
           WHERE factory_uid = $1 AND occurred_at >= ${from} AND occurred_at < ${to}
           GROUP BY 1, 2, 3`;

/**
 * One row per group, its cells as a text: "period inference compute platform,…". A year by day has tens of thousands of cells, which cost the
 * driver more than the database if each is a row.
 */
const listCells = (dimension: CostGrouping, key: string, creatorType = "''::text"): string => `
  WITH spend AS MATERIALIZED (
    SELECT day, coalesce(nullif(key, ''), '${UNKNOWN_KEY}') AS key, creator_type, ${SUMS}
      FROM (SELECT day, key, creator_type, ${SUMS}
              FROM cost_group_days
             WHERE factory_uid = $1 AND dimension = '${dimension}' AND day >= $2::date AND day < $3::date
             UNION ALL ${ledgerSums(key, creatorType, "$4", "$5")}
             UNION ALL ${ledgerSums(key, creatorType, "$6", "$7")}
           ) AS sums (day, key, creator_type, ${SUMS}))
  SELECT key, creator_type, model_calls, unpriced_calls, intervals, unpriced_intervals, cells
    FROM (SELECT key, max(creator_type) AS creator_type,
                 sum(model_calls)::bigint AS model_calls,
                 sum(unpriced_model_calls)::bigint AS unpriced_calls,
                 sum(compute_intervals)::bigint AS intervals,
                 sum(unpriced_compute_intervals)::bigint AS unpriced_intervals
            FROM spend
           GROUP BY key) AS groups
    JOIN (SELECT key, string_agg(concat_ws(' ', period, inference, compute, platform), ',') AS cells
            FROM (SELECT width_bucket(day, $8::date[]) - 1 AS period, key,
                         sum(inference_micros) AS inference, sum(compute_micros) AS compute, sum(platform_micros) AS platform
                    FROM spend
                   GROUP BY 1, 2) AS cells
           GROUP BY key) AS series USING (key)`;

const LIST_CELLS: Readonly<Record<CostGrouping, string>> = {
  source: listCells("source", "source"),
  user: listCells("user", "creator_uid", "creator_type"),
  agent: listCells("agent", "agent_uid"),
  model: listCells("model", "model_id"),
};

const toGroupedCells = (row: GroupRow): GroupedCells => ({
  key: row.key,
  creatorType: row.creator_type,
  cells: row.cells.split(",").map(toCostCell),
  coverage: {
    modelCalls: row.model_calls,
    pricedModelCalls: row.model_calls - row.unpriced_calls,
    computeIntervals: row.intervals,
    pricedComputeIntervals: row.intervals - row.unpriced_intervals,
  },
});

function toCostCell(text: string): CostCell {
  const [period, inference, compute, platform] = text.split(" ") as [string, string, string, string];
  return {
    period: Number(period),
    spend: { inferenceMicros: BigInt(inference), computeMicros: BigInt(compute), platformMicros: BigInt(platform) },
  };
}
