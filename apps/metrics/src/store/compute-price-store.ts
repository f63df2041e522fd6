import type { Principal } from "@millwright/caller";
import type { Sql } from "@millwright/database";
import type { ComputePrice } from "../domain/ledger-entry.ts";

/** How a version has corrected charges that were recorded before it was added. */
export type Repricing = {
  /** Undefined: in progress. */
  readonly completedAt: Date | undefined;
  readonly runCount: bigint;
  readonly correctionCount: bigint;
  readonly correctedMicros: bigint;
};

/** A version with who added it. `createdBy`: undefined if it was added by a migration, or in SQL. */
export type ComputePriceRecord = ComputePrice & {
  readonly createdAt: Date;
  readonly createdBy: Pick<Principal, "type" | "uid"> | undefined;
  readonly repricing: Repricing;
};

export type NewComputePrice = Omit<ComputePrice, "version"> & {
  readonly createdAt: Date;
  readonly createdBy: Pick<Principal, "type" | "uid">;
};

type PriceRow = {
  version: number;
  vcpu_hour_micros: string;
  gb_hour_micros: string;
  platform_run_micros: string;
  effective_from: Date;
};

type RecordRow = PriceRow & {
  created_at: Date;
  created_by_type: Principal["type"] | null;
  created_by_uid: string | null;
  completed_at: Date | null;
  run_count: string;
  corrections: string;
  corrected: string;
};

const PRICE = "version, vcpu_hour_micros::text, gb_hour_micros::text, platform_run_micros::text, effective_from";
const BOOK = "hashtextextended('price book', 0)";

/**
 * Returns every version of the price book. Blocks new versions until the transaction ends: its entries are priced by
 * all versions that exist when it commits, and are found by the re-pricing of a later version.
 */
export async function readPriceBook(tx: Sql): Promise<ComputePrice[]> {
  await tx.query(`SELECT pg_advisory_xact_lock_shared(${BOOK})::text`);
  const { rows } = await tx.query<PriceRow>(`SELECT ${PRICE} FROM compute_prices ORDER BY version`);
  return rows.map(toPrice);
}

/** Waits for transactions that have read the price book, then adds a version. Returns its number. */
export async function insertComputePrice(tx: Sql, price: NewComputePrice): Promise<number> {
  await tx.query(`SELECT pg_advisory_xact_lock(${BOOK})::text`);
  const { rows } = await tx.query<{ version: number }>(
    `INSERT INTO compute_prices (version, vcpu_hour_micros, gb_hour_micros, platform_run_micros, effective_from,
                                 created_at, created_by_type, created_by_uid)
     SELECT coalesce(max(version), 0) + 1, $1::bigint, $2::bigint, $3::bigint, $4::timestamptz, $5::timestamptz, $6, $7
       FROM compute_prices
     RETURNING version`,
    [
      ...[price.vcpuHourMicros, price.gbHourMicros, price.platformRunMicros].map(String),
      ...[price.effectiveFrom, price.createdAt, price.createdBy.type, price.createdBy.uid],
    ],
  );
  return rows[0]!.version;
}

/** Lists versions below `before`, newest first; without `before` from the newest. */
export async function listComputePrices(
  sql: Sql,
  before: number | undefined,
  limit: number,
): Promise<ComputePriceRecord[]> {
  const { rows } = await sql.query<RecordRow>(
    `SELECT ${PRICE}, created_at, created_by_type, created_by_uid,
            CASE WHEN r.version IS NULL THEN created_at ELSE r.completed_at END AS completed_at,
            coalesce(r.run_count, 0)::text AS run_count, c.corrections::text, c.corrected::text
       FROM (SELECT * FROM compute_prices WHERE version < $1 ORDER BY version DESC LIMIT $2) p
       LEFT JOIN repricings r USING (version)
      CROSS JOIN LATERAL (SELECT count(*) AS corrections, coalesce(sum(micros), 0) AS corrected
                            FROM ledger_entries
                           WHERE kind = 'adjustment'
                             AND component IN ('compute', 'platform')
                             AND price_version = p.version) c
      ORDER BY version DESC`,
    [before ?? 2 ** 31 - 1, limit],
  );
  return rows.map((row) => ({
    ...toPrice(row),
    createdAt: row.created_at,
    createdBy: row.created_by_type === null ? undefined : { type: row.created_by_type, uid: row.created_by_uid ?? "" },
    repricing: {
      completedAt: row.completed_at ?? undefined,
      runCount: BigInt(row.run_count),
      correctionCount: BigInt(row.corrections),
      correctedMicros: BigInt(row.corrected),
    },
  }));
}

const toPrice = (row: PriceRow): ComputePrice => ({
  version: row.version,
  vcpuHourMicros: BigInt(row.vcpu_hour_micros),
  gbHourMicros: BigInt(row.gb_hour_micros),
  platformRunMicros: BigInt(row.platform_run_micros),
  effectiveFrom: row.effective_from,
});
