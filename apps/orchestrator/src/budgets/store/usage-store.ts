import type { Sql } from "@millwright/database";
import { IS_BUDGETED } from "./budget-store.ts";
import { PRICE, toPrice, type PriceRow } from "../../catalog/store/model-price-store.ts";
import { MODEL_ACCESS, type ModelAccess, type ModelUsage, type TokenCounts } from "../../catalog/domain/usage.ts";

export type UsageInsert = {
  readonly runUid: string;
  readonly callId: string;
  readonly executionId: number;
  readonly attempt: number;
  readonly modelId: string;
  readonly tokens: TokenCounts;
  readonly costMicros?: bigint;
  /** What the call counts against limits, if that is not its cost. */
  readonly limitedMicros?: bigint;
  readonly priceVersion?: number;
  readonly access?: ModelAccess;
};

/**
 * Stores the usage of model calls. Micro-dollars are passed as text, because int8 exceeds the safe integers of a
 * number.
 */
export const usageStore = {
  /**
   * Inserts the usage of a call. Returns the provider of the run's model and whether a budget covers the run. Returns
   * undefined and changes nothing if this call was recorded before.
   */
  async insert(tx: Sql, usage: UsageInsert): Promise<{ provider: string; isBudgeted: boolean } | undefined> {
    const { tokens } = usage;
    const { rows } = await tx.query<{ provider: string | null; is_budgeted: boolean }>(
      `INSERT INTO usage_rows (run_uid, call_id, execution_id, attempt, model_id, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_micros, price_version, access, limited_micros)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::bigint, $11, $12, $13::bigint) ON CONFLICT (run_uid, call_id) DO NOTHING
       RETURNING (SELECT r.frozen->>'provider' FROM runs r WHERE r.uid = $1) AS provider, (SELECT ${IS_BUDGETED} FROM runs r WHERE r.uid = $1) AS is_budgeted`,
      [
        ...[usage.runUid, usage.callId, usage.executionId, usage.attempt, usage.modelId],
        ...[tokens.input ?? null, tokens.output ?? null, tokens.cacheRead ?? null, tokens.cacheWrite ?? null],
        ...[usage.costMicros?.toString() ?? null, usage.priceVersion ?? null, usage.access ?? null],
        usage.limitedMicros?.toString() ?? null,
      ],
    );
    return rows[0] && { provider: rows[0].provider ?? "", isBudgeted: rows[0].is_budgeted };
  },

  /** Returns sums per run, model, access and price. */
  async ofRuns(sql: Sql, runUids: readonly string[]): Promise<Map<string, ModelUsage[]>> {
    const byRun = new Map<string, ModelUsage[]>();
    if (runUids.length === 0) return byRun;
    const { rows } = await sql.query<UsageRow>(
      `SELECT u.run_uid, u.model_id, u.access, sum(coalesce(u.input_tokens, 0))::bigint AS input, sum(coalesce(u.output_tokens, 0))::bigint AS output,
              sum(coalesce(u.cache_read_tokens, 0))::bigint AS cache_read, sum(coalesce(u.cache_write_tokens, 0))::bigint AS cache_write,
              sum(coalesce(u.cost_micros, 0))::text AS cost_micros,
              count(*) FILTER (WHERE u.input_tokens IS NULL OR u.output_tokens IS NULL) AS unmeasured,
              count(*) FILTER (WHERE u.cost_micros IS NULL) AS unpriced, ${PRICE}
         FROM usage_rows u LEFT JOIN model_prices p ON p.model_id = u.model_id AND p.version = u.price_version
        WHERE u.run_uid = ANY($1::uuid[])
        GROUP BY u.run_uid, u.model_id, u.access, p.model_id, p.version ORDER BY u.run_uid, u.model_id, u.access, p.version`,
      [runUids],
    );
    for (const row of rows) byRun.set(row.run_uid, [...(byRun.get(row.run_uid) ?? []), toUsage(row)]);
    return byRun;
  },
};

export type UsageStore = typeof usageStore;

type UsageRow = PriceRow & {
  run_uid: string;
  model_id: string;
  access: string | null;
  input: number;
  output: number;
  cache_read: number;
  cache_write: number;
  cost_micros: string;
  unmeasured: number;
  unpriced: number;
};

function toUsage(row: UsageRow): ModelUsage {
  const price = toPrice(row);
  const access = MODEL_ACCESS.find((known) => known === row.access);
  return {
    modelId: row.model_id,
    access,
    input: row.input,
    output: row.output,
    cacheRead: row.cache_read,
    cacheWrite: row.cache_write,
    costMicros: BigInt(row.cost_micros),
    unmeasured: row.unmeasured,
    unpriced: row.unpriced,
    price,
  };
}
