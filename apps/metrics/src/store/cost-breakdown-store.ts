import type { Database } from "@millwright/database";
import type { DateRange, Period } from "@millwright/periods";
import { UNKNOWN_KEY, type CostCell, type CostGrouping } from "../domain/cost-groups.ts";
import { splitWholeDays } from "../domain/whole-days.ts";
import { periodStarts } from "./period-starts.ts";

export type CostCellQuery = {
  readonly factoryUid: string;
  readonly grouping: CostGrouping;
  readonly range: DateRange;
  /** None: one period, the range. */
  readonly periods: readonly Period[];
};

/** Spend by the time it occurred. */
export function costBreakdownStore(database: Database) {
  return {
    /**
     * Returns the spend per group and period. Whole days are read from their sums and partial days from the ledger, in one statement, so that both
     * are of the same time.
     */
    async listCostCells({ factoryUid, grouping, range, periods }: CostCellQuery): Promise<CostCell[]> {
      const { firstDay, lastDay, head, tail } = splitWholeDays(range);
      const starts = periodStarts(range, periods).map((start) => start.toISOString().slice(0, 10));
      const { rows } = await database.searches.query<CostCellRow>(
        LIST_CELLS[grouping],
        [factoryUid, firstDay, lastDay, head.start, head.end, tail.start, tail.end, starts],
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

const KEY_COLUMNS: Readonly<Record<CostGrouping, string>> = { source: "source", user: "creator_uid", agent: "agent_uid", model: "model_id" };

const IS_METERED = "kind IN ('model_call', 'compute_interval')";

/** Entries of a partial day in the shape of daily sums. */
const ledgerRows = (key: string, from: string, to: string): string => `
  SELECT utc_day(occurred_at), component, ${key}, creator_type, coalesce(micros, 0),
         (${IS_METERED})::integer, (${IS_METERED} AND micros IS NULL)::integer
    FROM ledger_entries
   WHERE factory_uid = $1 AND occurred_at >= ${from} AND occurred_at < ${to}`;

const listCells = (key: string): string => `
  SELECT width_bucket(day, $8::date[]) - 1 AS period,
         coalesce(nullif(key, ''), '${UNKNOWN_KEY}') AS key,
         max(creator_type) AS creator_type,
         coalesce(sum(micros) FILTER (WHERE component = 'inference'), 0) AS inference,
         coalesce(sum(micros) FILTER (WHERE component = 'compute'), 0) AS compute,
         coalesce(sum(micros) FILTER (WHERE component = 'platform'), 0) AS platform,
         coalesce(sum(entries) FILTER (WHERE component = 'inference'), 0) AS model_calls,
         coalesce(sum(unpriced) FILTER (WHERE component = 'inference'), 0) AS unpriced_calls,
         coalesce(sum(entries) FILTER (WHERE component = 'compute'), 0) AS intervals,
         coalesce(sum(unpriced) FILTER (WHERE component = 'compute'), 0) AS unpriced_intervals
    FROM (
  SELECT day, component, ${key} AS key, creator_type, micros, entries, unpriced
    FROM cost_days
   WHERE factory_uid = $1 AND day >= $2::date AND day < $3::date
   UNION ALL ${ledgerRows(key, "$4", "$5")}
   UNION ALL ${ledgerRows(key, "$6", "$7")}
         ) AS spend (day, component, key, creator_type, micros, entries, unpriced)
   GROUP BY 1, 2`;

const LIST_CELLS: Readonly<Record<CostGrouping, string>> = {
  source: listCells(KEY_COLUMNS.source),
  user: listCells(KEY_COLUMNS.user),
  agent: listCells(KEY_COLUMNS.agent),
  model: listCells(KEY_COLUMNS.model),
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
