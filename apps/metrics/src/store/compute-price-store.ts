import type { Sql } from "@millwright/database";
import type { ComputePrice } from "../domain/ledger-entry.ts";

type PriceRow = {
  version: number;
  vcpu_hour_micros: string;
  gb_hour_micros: string;
  platform_run_micros: string;
  effective_from: Date;
};

/** Returns every version of the price book of compute and the platform. */
export async function listComputePrices(sql: Sql): Promise<ComputePrice[]> {
  const { rows } = await sql.query<PriceRow>(
    `SELECT version, vcpu_hour_micros::text, gb_hour_micros::text, platform_run_micros::text, effective_from
       FROM compute_prices
      ORDER BY effective_from`,
  );
  return rows.map((row) => ({
    version: row.version,
    vcpuHourMicros: BigInt(row.vcpu_hour_micros),
    gbHourMicros: BigInt(row.gb_hour_micros),
    platformRunMicros: BigInt(row.platform_run_micros),
    effectiveFrom: row.effective_from,
  }));
}
