import type { Database } from "@millwright/database";
import { type CostCell, type CostGrouping } from "../domain/cost-groups.ts";
import { splitDays, type PeriodWindow } from "../domain/period-window.ts";
import { UNKNOWN_KEY } from "../domain/unknown-key.ts";

/** Spend by the time it occurred. */
export function costBreakdownStore(database: Database) {
  return {
    /**
     * Returns the spend per group and period. Whole days are read from their sums and partial days from the ledger, in one statement, so that both
     * are of the same time.
     */
    async listCostCells({ factoryUid, range, starts }: PeriodWindow, grouping: CostGrouping): Promise<CostCell[]> {
      const { before, days, after } = splitDays(range);
      const { rows } = await database.searches.query<CostCellRow>(LIST_CELLS[grouping], [
        factoryUid,
        dayOf(days.start),
        dayOf(days.end),
        before.start,
        before.end,
        after.start,
        after.end,
        starts.map(dayOf),
      ]);
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

/** Entries of a partial day in the shape of daily sums. */
const ledgerRows = (key: string, creatorType: string, from: string, to: string): string => `
          SELECT utc_day(occurred_at), ${key}, ${creatorType},
                 CASE WHEN component = 'inference' THEN micros END,
                 CASE WHEN component = 'compute' THEN micros END,
                 CASE WHEN component = 'platform' THEN micros END,
                 (kind = 'model_call')::integer,
                 (kind = 'model_call' AND micros IS NULL)::integer + CASE WHEN component = 'inference' THEN coalesce(unpriced_change, 0) ELSE 0 END,
                 (kind = 'compute_interval')::integer,
                 (kind = 'compute_interval' AND micros IS NULL)::integer + CASE WHEN component = 'compute' THEN coalesce(unpriced_change, 0) ELSE 0 END
            FROM ledger_entries
           WHERE factory_uid = $1 AND occurred_at >= ${from} AND occurred_at < ${to}`;

const listCells = (dimension: CostGrouping, key: string, creatorType = "''"): string => `
  SELECT width_bucket(day, $8::date[]) - 1 AS period,
         coalesce(nullif(key, ''), '${UNKNOWN_KEY}') AS key,
         max(creator_type) AS creator_type,
         coalesce(sum(inference_micros), 0) AS inference,
         coalesce(sum(compute_micros), 0) AS compute,
         coalesce(sum(platform_micros), 0) AS platform,
         sum(model_calls)::text AS model_calls,
         sum(unpriced_model_calls)::text AS unpriced_calls,
         sum(compute_intervals)::text AS intervals,
         sum(unpriced_compute_intervals)::text AS unpriced_intervals
    FROM (SELECT day, key, creator_type, inference_micros, compute_micros, platform_micros,
                 model_calls, unpriced_model_calls, compute_intervals, unpriced_compute_intervals
            FROM cost_group_days
           WHERE factory_uid = $1 AND dimension = '${dimension}' AND day >= $2::date AND day < $3::date
           UNION ALL ${ledgerRows(key, creatorType, "$4", "$5")}
           UNION ALL ${ledgerRows(key, creatorType, "$6", "$7")}
         ) AS spend (day, key, creator_type, inference_micros, compute_micros, platform_micros,
                     model_calls, unpriced_model_calls, compute_intervals, unpriced_compute_intervals)
   GROUP BY 1, 2`;

const LIST_CELLS: Readonly<Record<CostGrouping, string>> = {
  source: listCells("source", "source"),
  user: listCells("user", "creator_uid", "creator_type"),
  agent: listCells("agent", "agent_uid"),
  model: listCells("model", "model_id"),
};

const toCostCell = (row: CostCellRow): CostCell => ({
  period: row.period,
  key: row.key,
  creatorType: row.creator_type,
  spend: {
    inferenceMicros: BigInt(row.inference),
    computeMicros: BigInt(row.compute),
    platformMicros: BigInt(row.platform),
  },
  coverage: {
    modelCalls: Number(row.model_calls),
    pricedModelCalls: Number(row.model_calls) - Number(row.unpriced_calls),
    computeIntervals: Number(row.intervals),
    pricedComputeIntervals: Number(row.intervals) - Number(row.unpriced_intervals),
  },
});
