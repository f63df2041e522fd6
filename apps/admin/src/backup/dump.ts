import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import type { Client } from "pg";
import { jsonRows, valuesOf } from "../databases.ts";

/** What a dump of one database consists of, besides the rows in `<table>.ndjson.gz`. */
type Dump = {
  readonly migrations: readonly string[];
  /** Tables with rows of their own, those that others refer to first. */
  readonly tables: readonly { readonly name: string; readonly rows: number }[];
  readonly partitions: readonly { readonly name: string; readonly parent: string; readonly bounds: string }[];
  readonly sequences: readonly { readonly name: string; readonly value: string }[];
};

const MIGRATIONS = `SELECT migration_name AS value
   FROM _prisma_migrations
  WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL
  ORDER BY migration_name`;

/** Ordinary and partitioned tables, without partitions; referenced tables before those that refer to them. */
const TABLES = `WITH RECURSIVE tables AS (
    SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name
      FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND NOT c.relispartition
       AND n.nspname IN ('public', 'stream') AND c.relname <> '_prisma_migrations'
  ), depths AS (
    SELECT oid, name, 0 AS depth FROM tables
    UNION
    SELECT t.oid, t.name, d.depth + 1
      FROM depths d
      JOIN pg_constraint k ON k.contype = 'f' AND k.confrelid = d.oid AND k.conrelid <> k.confrelid
      JOIN tables t ON t.oid = k.conrelid
  )
  SELECT name AS value FROM depths GROUP BY name ORDER BY max(depth), name`;

const PARTITIONS = `SELECT format('%I.%I', n.nspname, c.relname) AS name,
        i.inhparent::regclass::text AS parent,
        pg_get_expr(c.relpartbound, c.oid) AS bounds
   FROM pg_class c
   JOIN pg_namespace n ON n.oid = c.relnamespace
   JOIN pg_inherits i ON i.inhrelid = c.oid
  WHERE c.relispartition AND c.relkind = 'r'
  ORDER BY 1`;

const SEQUENCES = `SELECT format('%I.%I', schemaname, sequencename) AS name, last_value::text AS value
   FROM pg_sequences
  WHERE schemaname IN ('public', 'stream') AND last_value IS NOT NULL`;

const fileOf = (directory: string, table: string): string => join(directory, `${table}.ndjson.gz`);

/** Writes a database as the open transaction of `db` sees it. Returns the number of rows. */
export async function writeDump(db: Client, directory: string): Promise<number> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const tables: { name: string; rows: number }[] = [];
  for (const name of await valuesOf(db, TABLES)) {
    let rows = 0;
    const lines = async function* () {
      for await (const row of jsonRows(db, `${name} AS t`)) {
        rows += 1;
        yield `${row}\n`;
      }
    };
    await pipeline(Readable.from(lines()), createGzip(), createWriteStream(fileOf(directory, name), { mode: 0o600 }));
    tables.push({ name, rows });
  }
  const dump: Dump = {
    migrations: await valuesOf(db, MIGRATIONS),
    tables,
    partitions: (await db.query<Dump["partitions"][number]>(PARTITIONS)).rows,
    sequences: (await db.query<Dump["sequences"][number]>(SEQUENCES)).rows,
  };
  await writeFile(join(directory, "dump.json"), `${JSON.stringify(dump, null, 2)}\n`, { mode: 0o600 });
  return tables.reduce((sum, { rows }) => sum + rows, 0);
}

/**
 * Loads a dump into a database that was just migrated, in one transaction. Returns the number of rows. Throws if the
 * database has other migrations than the dump, or already has data of a platform.
 */
export async function readDump(db: Client, directory: string): Promise<number> {
  const dump = JSON.parse(await readFile(join(directory, "dump.json"), "utf8")) as Dump;
  const migrations = await valuesOf(db, MIGRATIONS);
  if (migrations.join() !== dump.migrations.join())
    throw new Error(
      `The backup has the migrations ${dump.migrations.join(", ")}, and this release has ${migrations.join(", ")}: restore it with the release that made it.`,
    );
  const [head] = await valuesOf(db, "SELECT head::text AS value FROM stream.event_meta");
  if (head !== "0") throw new Error(`The database already has ${head} events: restore into an empty one.`);
  await db.query("BEGIN");
  for (const { name, parent, bounds } of dump.partitions)
    await db.query(`CREATE TABLE IF NOT EXISTS ${name} PARTITION OF ${parent} ${bounds}`);
  await db.query(`TRUNCATE ${dump.tables.map(({ name }) => name).join(", ")}`);
  let count = 0;
  for (const { name, rows } of dump.tables) {
    const loaded = await load(db, name, fileOf(directory, name));
    if (loaded !== rows)
      throw new Error(`${name} has ${loaded} rows in the backup instead of ${rows}: it is incomplete.`);
    count += loaded;
  }
  for (const { name, value } of dump.sequences) await db.query("SELECT setval($1, $2)", [name, value]);
  await db.query("COMMIT");
  return count;
}

const BATCH = 500;

/** Inserts the rows of a file, without firing triggers, which have already changed the rows of other tables. */
async function load(db: Client, table: string, file: string): Promise<number> {
  const columns = await valuesOf(
    db,
    `SELECT quote_ident(attname) AS value
       FROM pg_attribute
      WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
      ORDER BY attnum`,
    [table],
  );
  const list = columns.join(", ");
  const insert = `INSERT INTO ${table} (${list}) OVERRIDING SYSTEM VALUE
    SELECT ${list} FROM json_populate_recordset(NULL::${table}, $1::json)`;
  await db.query(`ALTER TABLE ${table} DISABLE TRIGGER USER`);
  let count = 0;
  let batch: string[] = [];
  const flush = async (): Promise<void> => {
    if (batch.length > 0) await db.query(insert, [`[${batch.join(",")}]`]);
    count += batch.length;
    batch = [];
  };
  const lines = createInterface({ input: createReadStream(file).pipe(createGunzip()), crlfDelay: Infinity });
  for await (const line of lines) {
    batch.push(line);
    if (batch.length >= BATCH) await flush();
  }
  await flush();
  await db.query(`ALTER TABLE ${table} ENABLE TRIGGER USER`);
  return count;
}
