import type { Sql } from "@millwright/database";

/**
 * What time it is, as SQL. Slots go by the database's clock alone, so that replicas whose clocks differ agree. Tests put an
 * expression of their own in its place.
 */
export type DatabaseTime = string;

export const DATABASE_TIME: DatabaseTime = "now()";

export async function readTime(sql: Sql, time: DatabaseTime): Promise<Date> {
  const { rows } = await sql.query<{ now: Date }>(`SELECT (${time})::timestamptz(3) AS now`);
  return rows[0]!.now;
}
