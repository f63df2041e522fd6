import type { Sql } from "@millwright/database";

/**
 * An SQL expression of the current time. Slots use only the database's clock, so that replicas with different clocks
 * agree. Tests use their own expression.
 */
export type DatabaseTime = string;

export const DATABASE_TIME: DatabaseTime = "now()";

export async function readTime(sql: Sql, time: DatabaseTime): Promise<Date> {
  const { rows } = await sql.query<{ now: Date }>(`SELECT (${time})::timestamptz(3) AS now`);
  return rows[0]!.now;
}
