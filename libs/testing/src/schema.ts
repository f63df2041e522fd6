import type { Sql } from "@millwright/database";
import { testDatabase } from "./postgres.ts";

/**
 * Describes the tables, views, types and functions of a database, one sorted line per column, constraint, index and
 * trigger. The order of columns, comments and the layout of functions make no difference. Leaves out extensions and the
 * ledger of migrations.
 */
export async function describeSchema(sql: Sql): Promise<string[]> {
  const { rows } = await sql.query<{ line: string }>(SCHEMA);
  return rows.map(({ line }) => line.replaceAll(/\s*--[^\n]*/g, "").replaceAll(/\s+/g, " "));
}

const SCHEMA = `
WITH relations AS (
  SELECT c.*, format('%I.%I', n.nspname, c.relname) AS name
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE n.nspname !~ '^(pg_|information_schema$)'
     AND c.relname <> '_prisma_migrations'
     AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
), lines AS (
  SELECT format('schema %I', nspname) AS line
    FROM pg_namespace
   WHERE nspname !~ '^(pg_|information_schema$)'
  UNION ALL
  SELECT format('extension %I', extname)
    FROM pg_extension
  UNION ALL
  SELECT concat_ws(' ', 'table', c.name,
                   CASE c.relpersistence WHEN 'u' THEN 'unlogged' END,
                   'partition by ' || pg_get_partkeydef(c.oid),
                   'of ' || i.inhparent::regclass::text || ' ' || pg_get_expr(c.relpartbound, c.oid),
                   'with ' || c.reloptions::text)
    FROM relations c
    LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
   WHERE c.relkind IN ('r', 'p')
  UNION ALL
  SELECT concat_ws(' ', 'table', c.name, 'column', a.attname, format_type(a.atttypid, a.atttypmod),
                   CASE WHEN a.attcollation NOT IN (0, t.typcollation) THEN 'collate ' || a.attcollation::regcollation::text END,
                   CASE WHEN a.attnotnull THEN 'not null' END,
                   CASE WHEN a.attidentity <> '' THEN 'identity ' || a.attidentity::text END,
                   CASE WHEN a.attgenerated <> '' THEN 'generated ' || a.attgenerated::text END,
                   'default ' || pg_get_expr(d.adbin, d.adrelid),
                   CASE WHEN a.attstorage <> t.typstorage THEN 'storage ' || a.attstorage::text END,
                   'statistics ' || a.attstattarget::text)
    FROM relations c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
   WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
  UNION ALL
  SELECT format('table %s constraint %I %s', c.name, k.conname, pg_get_constraintdef(k.oid))
    FROM relations c
    JOIN pg_constraint k ON k.conrelid = c.oid AND k.conislocal AND k.contype <> 'n'
  UNION ALL
  SELECT format('table %s index %s', t.name, pg_get_indexdef(i.indexrelid))
    FROM relations t
    JOIN pg_index i ON i.indrelid = t.oid
   WHERE NOT t.relispartition
  UNION ALL
  SELECT format('table %s trigger %s (%s)', c.name, pg_get_triggerdef(g.oid), g.tgenabled)
    FROM relations c
    JOIN pg_trigger g ON g.tgrelid = c.oid AND NOT g.tgisinternal
  UNION ALL
  SELECT format('table %s statistics %s', c.name, pg_get_statisticsobjdef(s.oid))
    FROM relations c
    JOIN pg_statistic_ext s ON s.stxrelid = c.oid
  UNION ALL
  SELECT format('view %s %s', name, pg_get_viewdef(oid))
    FROM relations
   WHERE relkind IN ('v', 'm')
  UNION ALL
  SELECT format('sequence %s', name)
    FROM relations
   WHERE relkind = 'S'
  UNION ALL
  SELECT format('enum %s %s', t.oid::regtype, (SELECT array_agg(enumlabel ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid))
    FROM pg_type t
   WHERE t.typtype = 'e'
  UNION ALL
  SELECT pg_get_functiondef(p.oid)
    FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace
   WHERE n.nspname !~ '^(pg_|information_schema$)'
     AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
)
SELECT line FROM lines ORDER BY line COLLATE "C"`;

/**
 * Describes the rows of all tables, one sorted line each. Values of columns whose default is random or the current time
 * are left out.
 */
export async function describeRows(sql: Sql): Promise<string[]> {
  const { rows: tables } = await sql.query<{ name: string; hidden: string[] }>(`
    SELECT format('%I.%I', n.nspname, c.relname) AS name,
           coalesce(array_agg(a.attname) FILTER (WHERE pg_get_expr(d.adbin, d.adrelid) ~ 'random|now|CURRENT'), '{}') AS hidden
      FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace
      JOIN pg_attribute a ON a.attrelid = c.oid
      LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
     WHERE n.nspname !~ '^(pg_|information_schema$)'
       AND c.relkind IN ('r', 'p')
       AND NOT c.relispartition
       AND c.relname <> '_prisma_migrations'
     GROUP BY 1`);
  const described = await Promise.all(
    tables.map(({ name, hidden }) =>
      sql.query<{ line: string }>(
        `SELECT format('row of %s %s', $1::text, to_jsonb(t) - $2::text[]) AS line FROM ${name} t`,
        [name, hidden],
      ),
    ),
  );
  return described.flatMap(({ rows }) => rows.map(({ line }) => line)).toSorted();
}

/**
 * Returns every line of the schema `stream` that the canonical SQL of a library (`EVENT_TABLES_SQL`, `WORK_TABLES_SQL`)
 * creates and that a migrated database lacks. Empty: the service's migrations contain the tables.
 */
export async function missingTables(migrated: Sql, canonicalSql: string): Promise<string[]> {
  const reference = await testDatabase();
  try {
    await reference.database.pool.query(canonicalSql);
    const present = new Set(await describeSchema(migrated));
    return (await describeSchema(reference.database.sql)).filter((line) => !present.has(line));
  } finally {
    await reference.close();
  }
}
