import type { Sql } from "@millwright/database";
import { IS_BUDGETED } from "./budget-store.ts";
import {
  MODEL_ACCESS,
  type ModelAccess,
  type ModelUsage,
  type PriceVersion,
  type TokenCounts,
} from "../domain/usage.ts";

export type UsageInsert = {
  readonly runUid: string;
  readonly callId: string;
  readonly executionId: number;
  readonly attempt: number;
  readonly modelId: string;
  readonly tokens: TokenCounts;
  readonly costMicros?: bigint;
  readonly priceVersion?: number;
  readonly access?: ModelAccess;
};

/** Usage of model calls, and the prices in force. Micro-dollars travel as text: int8 may exceed what a number holds. */
export const usageStore = {
  /** The newest price in force now. */
  async currentPrice(sql: Sql, modelId: string): Promise<PriceVersion | undefined> {
    return (await usageStore.currentPrices(sql, [modelId])).get(modelId);
  },

  async currentPrices(sql: Sql, modelIds: readonly string[]): Promise<Map<string, PriceVersion>> {
    const { rows } = await sql.query<PriceRow & { model_id: string }>(
      `SELECT DISTINCT ON (model_id) model_id, ${PRICE} FROM model_prices p WHERE model_id = ANY($1) AND effective_from <= now() ORDER BY model_id, version DESC`,
      [modelIds],
    );
    const prices = rows.map((row) => [row.model_id, toPrice(row)] as const);
    return new Map(prices.flatMap(([modelId, price]) => (price ? [[modelId, price]] : [])));
  },

  /** Returns the provider of the run's model and whether a budget covers the run; undefined when this call was recorded before: nothing changes then. */
  async insert(tx: Sql, usage: UsageInsert): Promise<{ provider: string; isBudgeted: boolean } | undefined> {
    const { tokens } = usage;
    const { rows } = await tx.query<{ provider: string | null; is_budgeted: boolean }>(
      `INSERT INTO usage_rows (run_uid, call_id, execution_id, attempt, model_id, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_micros, price_version, access)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::bigint, $11, $12) ON CONFLICT (run_uid, call_id) DO NOTHING
       RETURNING (SELECT r.frozen->>'provider' FROM runs r WHERE r.uid = $1) AS provider, (SELECT ${IS_BUDGETED} FROM runs r WHERE r.uid = $1) AS is_budgeted`,
      [
        ...[usage.runUid, usage.callId, usage.executionId, usage.attempt, usage.modelId],
        ...[tokens.input ?? null, tokens.output ?? null, tokens.cacheRead ?? null, tokens.cacheWrite ?? null],
        ...[usage.costMicros?.toString() ?? null, usage.priceVersion ?? null, usage.access ?? null],
      ],
    );
    return rows[0] && { provider: rows[0].provider ?? "", isBudgeted: rows[0].is_budgeted };
  },

  /** Sums per run, model, access and price. */
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

const PRICE = `p.version, p.input_per_million_micros::text AS input_price, p.output_per_million_micros::text AS output_price,
  p.cache_read_per_million_micros::text AS cache_read_price, p.cache_write_per_million_micros::text AS cache_write_price`;

type PriceRow = {
  version: number | null;
  input_price: string | null;
  output_price: string | null;
  cache_read_price: string | null;
  cache_write_price: string | null;
};
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

function toPrice(row: PriceRow): PriceVersion | undefined {
  if (row.version === null || row.input_price === null || row.output_price === null) return undefined;
  return {
    version: row.version,
    inputPerMillionMicros: BigInt(row.input_price),
    outputPerMillionMicros: BigInt(row.output_price),
    ...(row.cache_read_price === null ? {} : { cacheReadPerMillionMicros: BigInt(row.cache_read_price) }),
    ...(row.cache_write_price === null ? {} : { cacheWritePerMillionMicros: BigInt(row.cache_write_price) }),
  };
}

function toUsage(row: UsageRow): ModelUsage {
  const price = toPrice(row);
  const access = MODEL_ACCESS.find((known) => known === row.access);
  return {
    modelId: row.model_id,
    ...(access ? { access } : {}),
    input: row.input,
    output: row.output,
    cacheRead: row.cache_read,
    cacheWrite: row.cache_write,
    costMicros: BigInt(row.cost_micros),
    unmeasured: row.unmeasured,
    unpriced: row.unpriced,
    ...(price ? { price } : {}),
  };
}
