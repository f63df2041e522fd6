import type { Sql } from "@millwright/database";
import { omitUndefined } from "@millwright/json";
import type { ModelPrice, ModelPricePosition, NewModelPrice } from "../domain/model-price.ts";
import type { PriceVersion } from "../domain/usage.ts";

/** Columns of `model_prices p` that a price is made of. Micro-dollars are text: int8 exceeds the safe integers of a number. */
export const PRICE = `p.version,
  p.input_per_million_micros::text AS input_price,
  p.output_per_million_micros::text AS output_price,
  p.cache_read_per_million_micros::text AS cache_read_price,
  p.cache_write_per_million_micros::text AS cache_write_price`;

export type PriceRow = {
  version: number | null;
  input_price: string | null;
  output_price: string | null;
  cache_read_price: string | null;
  cache_write_price: string | null;
};

type RecordRow = PriceRow & {
  model_id: string;
  version: number;
  effective_from: Date;
  created_at: Date;
  created_by_type: string | null;
  created_by_uid: string | null;
};

/** Versioned prices of models. The clock of the database decides which version is in force. */
export const modelPriceStore = {
  /** Returns the price in force of a model. */
  async current(sql: Sql, modelId: string): Promise<PriceVersion | undefined> {
    return (await modelPriceStore.currentOf(sql, [modelId])).get(modelId);
  },

  /** Returns the prices in force by model. Of versions with the same `effective_from`, the newest applies. */
  async currentOf(sql: Sql, modelIds: readonly string[]): Promise<Map<string, PriceVersion>> {
    const { rows } = await sql.query<PriceRow & { model_id: string }>(
      `SELECT DISTINCT ON (p.model_id) p.model_id, ${PRICE}
         FROM model_prices p
        WHERE p.model_id = ANY($1) AND p.effective_from <= now()
        ORDER BY p.model_id, p.effective_from DESC, p.version DESC`,
      [modelIds],
    );
    const prices = rows.map((row) => [row.model_id, toPrice(row)] as const);
    return new Map(prices.flatMap(([modelId, price]) => (price ? [[modelId, price]] : [])));
  },

  /** Returns versions by model, newest first, after `after`; of one model if `modelId` is given. */
  async list(
    sql: Sql,
    modelId: string | undefined,
    after: ModelPricePosition | undefined,
    limit: number,
  ): Promise<ModelPrice[]> {
    const { rows } = await sql.query<RecordRow>(
      `SELECT ${RECORD}
         FROM model_prices p
        WHERE ($1::text IS NULL OR p.model_id = $1)
          AND ($2::text IS NULL OR p.model_id COLLATE "C" > $2 OR (p.model_id = $2 AND p.version < $3))
        ORDER BY p.model_id COLLATE "C", p.version DESC
        LIMIT $4`,
      [modelId ?? null, after?.modelId ?? null, after?.version ?? null, limit],
    );
    return rows.map(toModelPrice);
  },

  /** Inserts the next version of a model. Returns undefined if it were to apply from a time in the past. */
  async insert(
    tx: Sql,
    price: NewModelPrice,
    createdBy: { readonly type: string; readonly uid: string },
  ): Promise<ModelPrice | undefined> {
    await tx.query("SELECT pg_advisory_xact_lock(hashtextextended('model price ' || $1::text, 0))::text", [
      price.modelId,
    ]);
    const { rows } = await tx.query<RecordRow>(
      `INSERT INTO model_prices AS p (model_id, version, input_per_million_micros, output_per_million_micros,
                                      cache_read_per_million_micros, cache_write_per_million_micros,
                                      effective_from, created_by_type, created_by_uid)
       SELECT $1::text, coalesce(max(version), 0) + 1, $2::bigint, $3::bigint, $4::bigint, $5::bigint,
              coalesce($6::timestamptz, now()), $7::text, $8::uuid
         FROM model_prices
        WHERE model_id = $1
       HAVING $6::timestamptz IS NULL OR $6::timestamptz >= date_trunc('milliseconds', now())
       RETURNING ${RECORD}`,
      [
        ...[price.modelId, String(price.inputPerMillionMicros), String(price.outputPerMillionMicros)],
        ...[price.cacheReadPerMillionMicros?.toString() ?? null, price.cacheWritePerMillionMicros?.toString() ?? null],
        ...[price.effectiveFrom ?? null, createdBy.type, createdBy.uid],
      ],
    );
    return rows[0] && toModelPrice(rows[0]);
  },
};

const RECORD = `p.model_id, ${PRICE}, p.effective_from, p.created_at, p.created_by_type, p.created_by_uid`;

/** Returns the price of a row, or undefined if the row of an outer join has none. */
export function toPrice(row: PriceRow): PriceVersion | undefined {
  if (row.version === null || row.input_price === null || row.output_price === null) return undefined;
  return {
    version: row.version,
    inputPerMillionMicros: BigInt(row.input_price),
    outputPerMillionMicros: BigInt(row.output_price),
    ...omitUndefined({
      cacheReadPerMillionMicros: row.cache_read_price === null ? undefined : BigInt(row.cache_read_price),
      cacheWritePerMillionMicros: row.cache_write_price === null ? undefined : BigInt(row.cache_write_price),
    }),
  };
}

const toModelPrice = (row: RecordRow): ModelPrice => ({
  ...toPrice(row)!,
  modelId: row.model_id,
  effectiveFrom: row.effective_from,
  createdAt: row.created_at,
  createdBy:
    row.created_by_type === null || row.created_by_uid === null
      ? undefined
      : { type: row.created_by_type, uid: row.created_by_uid },
});

export type ModelPriceStore = typeof modelPriceStore;
