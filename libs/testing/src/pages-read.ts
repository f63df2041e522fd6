import type { Sql } from "@millwright/database";

/**
 * Returns how many pages of tables and indexes `f` reads on this connection. No other session may read in this database
 * concurrently.
 */
export async function pagesRead(sql: Sql, f: () => Promise<unknown>): Promise<number> {
  const before = await counted(sql);
  await f();
  return (await counted(sql)) - before;
}

async function counted(sql: Sql): Promise<number> {
  await sql.query("SELECT pg_stat_force_next_flush()");
  const { rows } = await sql.query<{ pages: number }>(
    "SELECT sum(coalesce(heap_blks_hit, 0) + coalesce(heap_blks_read, 0) + coalesce(idx_blks_hit, 0) + coalesce(idx_blks_read, 0))::bigint AS pages FROM pg_statio_user_tables",
  );
  return rows[0]!.pages;
}
