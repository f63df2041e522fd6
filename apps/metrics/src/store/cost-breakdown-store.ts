import type { Database } from "@millwright/database";
import { UNKNOWN_KEY, type CostCell, type CostGrouping } from "../domain/cost-groups.ts";
import { splitDays, type PeriodWindow } from "../domain/period-window.ts";

/** Spend by the time it occurred. */
export function costBreakdownStore(database: Database) {
  return {
    /**
     * Returns the spend per group and period. Whole days are read from their sums and partial days from the ledger, in one statement, so that both
     * are of the same time.
     */
    async listCostCells({ factoryUid, range, starts }: PeriodWindow, grouping: CostGrouping): Promise<CostCell[]> {
      const { before, days, after } = splitDays(range);
      const { rows } = await database.searches.query<CostCellRow>(
        LIST_CELLS[grouping],
        [factoryUid, dayOf(days.start), dayOf(days.end), before.start, before.end, after.start, after.end, starts.map(dayOf)],
      );
      return rows.map(toCostCell);
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

type CostCellRow = {
  period: number;
  key: string;
  creator_type: string;
  inference: string;
  compute: string;
  platform: string;
  model_calls: string;
  unpriced_calls: string;
  intervals: string;
  unpriced_intervals: string;
};

const dayOf = (time: Date): string => time.toISOString().slice(0, 10);

const IS_METERED = "kind IN ('model_call', 'compute_interval')";

/** Entries of a partial day in the shape of daily sums. */
const ledgerRows = (key: string, creatorType: string, from: string, to: string): string => `
          SELECT utc_day(occurred_at), component, ${key}, ${creatorType}, coalesce(micros, 0),
                 (${IS_METERED})::integer, (${IS_METERED} AND micros IS NULL)::integer
            FROM ledger_entries
           WHERE factory_uid = $1 AND occurred_at >= ${from} AND occurred_at < ${to}`;

/** Sums per component first, with few sums per row: a year has several hundred thousand rows. */
const listCells = (key: string, creatorType = "''"): string => `
  SELECT period,
         coalesce(nullif(key, ''), '${UNKNOWN_KEY}') AS key,
         max(creator_type) AS creator_type,
         coalesce(sum(micros) FILTER (WHERE component = 'inference'), 0) AS inference,
         coalesce(sum(micros) FILTER (WHERE component = 'compute'), 0) AS compute,
         coalesce(sum(micros) FILTER (WHERE component = 'platform'), 0) AS platform,
         coalesce(sum(entries) FILTER (WHERE component = 'inference'), 0) AS model_calls,
         coalesce(sum(unpriced) FILTER (WHERE component = 'inference'), 0) AS unpriced_calls,
         coalesce(sum(entries) FILTER (WHERE component = 'compute'), 0) AS intervals,
         coalesce(sum(unpriced) FILTER (WHERE component = 'compute'), 0) AS unpriced_intervals
    FROM (SELECT width_bucket(day, $8::date[]) - 1, component, key, creator_type, sum(micros), sum(entries), sum(unpriced)
            FROM (
          SELECT day, component, ${key}, ${creatorType}, micros, entries, unpriced
            FROM cost_days
           WHERE factory_uid = $1 AND day >= $2::date AND day < $3::date
           UNION ALL ${ledgerRows(key, creatorType, "$4", "$5")}
           UNION ALL ${ledgerRows(key, creatorType, "$6", "$7")}
                 ) AS spend (day, component, key, creator_type, micros, entries, unpriced)
           GROUP BY 1, 2, 3, 4
         ) AS sums (period, component, key, creator_type, micros, entries, unpriced)
   GROUP BY 1, 2`;

const LIST_CELLS: Readonly<Record<CostGrouping, string>> = {
  source: listCells("source"),
  user: listCells("creator_uid", "creator_type"),
  agent: listCells("agent_uid"),
  model: listCells("model_id"),
};

const toCostCell = (row: CostCellRow): CostCell => ({
  period: row.period,
  key: row.key,
  creatorType: row.creator_type,
  spend: { inferenceMicros: BigInt(row.inference), computeMicros: BigInt(row.compute), platformMicros: BigInt(row.platform) },
  coverage: {
    modelCalls: Number(row.model_calls),
    pricedModelCalls: Number(row.model_calls) - Number(row.unpriced_calls),
    computeIntervals: Number(row.intervals),
    pricedComputeIntervals: Number(row.intervals) - Number(row.unpriced_intervals),
  },
});
