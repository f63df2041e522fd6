import type { Sql } from "@millwright/database";
import { testDatabase } from "./postgres.ts";

/**
 * Names every column, constraint and index that the canonical SQL of a library (`EVENT_TABLES_SQL`, `WORK_TABLES_SQL`)
 * creates and that a migrated database lacks. Empty: the service's migrations contain the tables.
 */
export async function missingTables(migrated: Sql, canonicalSql: string): Promise<string[]> {
  const reference = await testDatabase();
  try {
    await reference.database.pool.query(canonicalSql);
    const present = new Set(await describeTables(migrated));
    return (await describeTables(reference.database.sql)).filter((line) => !present.has(line));
  } finally {
    await reference.close();
  }
}

async function describeTables(sql: Sql): Promise<string[]> {
  const { rows } = await sql.query<{ line: string }>(`
    SELECT format('column %s.%s %s%s default %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
                  CASE WHEN a.attnotnull THEN ' not null' ELSE '' END, coalesce(pg_get_expr(d.adbin, d.adrelid), 'none')) AS line
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
     WHERE c.relnamespace = to_regnamespace('stream') AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    UNION ALL SELECT format('index %s', indexdef) FROM pg_indexes
     WHERE schemaname = 'stream' AND NOT (SELECT relispartition FROM pg_class WHERE oid = format('%I.%I', schemaname, indexname)::regclass)
    UNION ALL SELECT format('constraint %s on %s %s', conname, conrelid::regclass, pg_get_constraintdef(oid)) FROM pg_constraint
     WHERE connamespace = to_regnamespace('stream') AND contype IN ('c', 'f') AND conislocal`);
  return rows.map(({ line }) => line);
}
