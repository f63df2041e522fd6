import type { Database } from "@millwright/database";
import type { CostCell, CostGrouping, GroupedCells } from "../domain/cost-groups.ts";
import { splitDays, type PeriodWindow } from "../domain/period-window.ts";
import { UNKNOWN_KEY } from "../domain/unknown-key.ts";

/** Spend by the time it occurred. */
export function costBreakdownStore(database: Database) {
  return {
    /**
     * Returns the spend per group and period. Whole days are read from their sums and partial days from the ledger, in
     * one statement, so that both are of the same time.
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

/**
 * Entries of a part of one UTC day in the shape of daily sums. They are grouped by component and kind first, so that
 * each entry is added to few sums: a day has tens of thousands of entries, but few groups.
 */
const ledgerSums = (key: string, creatorType: string, from: string, to: string): string => `
            SELECT day, key, creator_type,
                   coalesce(sum(micros) FILTER (WHERE component = 'inference'), 0)::bigint,
                   coalesce(sum(micros) FILTER (WHERE component = 'compute'), 0)::bigint,
                   coalesce(sum(micros) FILTER (WHERE component = 'platform'), 0)::bigint,
                   coalesce(sum(entries) FILTER (WHERE kind = 'model_call'), 0)::bigint,
                   coalesce(sum(unpriced) FILTER (WHERE component = 'inference'), 0)::bigint,
                   coalesce(sum(entries) FILTER (WHERE kind = 'compute_interval'), 0)::bigint,
                   coalesce(sum(unpriced) FILTER (WHERE component = 'compute'), 0)::bigint
              FROM (SELECT utc_day(${from}) AS day, ${key} AS key, ${creatorType} AS creator_type, component, kind,
                           sum(micros) AS micros, count(*) AS entries,
                           CASE WHEN kind = 'adjustment' THEN coalesce(sum(unpriced_change), 0) ELSE count(*) - count(micros) END AS unpriced
                      FROM ledger_entries
                     WHERE factory_uid = $1 AND occurred_at >= ${from} AND occurred_at < ${to}
                     GROUP BY ${[key, ...(creatorType.startsWith("'") ? [] : [creatorType])].join(", ")}, component, kind) AS entries
             GROUP BY day, key, creator_type`;

/**
 * One row per group, its cells as a text: "period inference compute platform,…". A year by day has tens of thousands of
 * cells, which cost the driver more than the database if each is a row.
 */
const listCells = (dimension: CostGrouping, key: string, creatorType = "''::text"): string => `
  SELECT coalesce(nullif(key, ''), '${UNKNOWN_KEY}') AS key,
         max(creator_type) AS creator_type,
         sum(model_calls)::bigint AS model_calls,
         sum(unpriced_model_calls)::bigint AS unpriced_calls,
         sum(compute_intervals)::bigint AS intervals,
         sum(unpriced_compute_intervals)::bigint AS unpriced_intervals,
         string_agg(concat_ws(' ', width_bucket(day, $8::date[]) - 1, inference_micros, compute_micros, platform_micros), ',') AS cells
    FROM (SELECT day, key, creator_type, ${SUMS}
            FROM cost_group_days
           WHERE factory_uid = $1 AND dimension = '${dimension}' AND day >= $2::date AND day < $3::date
           UNION ALL ${ledgerSums(key, creatorType, "$4::timestamptz", "$5::timestamptz")}
           UNION ALL ${ledgerSums(key, creatorType, "$6::timestamptz", "$7::timestamptz")}
         ) AS sums (day, key, creator_type, ${SUMS})
   GROUP BY 1`;

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
    inferenceMicros: BigInt(inference),
    computeMicros: BigInt(compute),
    platformMicros: BigInt(platform),
  };
}
