import { createHash, randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Client, escapeIdentifier } from "pg";

const LEDGER = `CREATE TABLE IF NOT EXISTS _prisma_migrations (
  id VARCHAR(36) PRIMARY KEY NOT NULL, checksum VARCHAR(64) NOT NULL, finished_at TIMESTAMPTZ,
  migration_name VARCHAR(255) NOT NULL, logs TEXT, rolled_back_at TIMESTAMPTZ,
  started_at TIMESTAMPTZ NOT NULL DEFAULT now(), applied_steps_count INTEGER NOT NULL DEFAULT 0)`;

/** Prisma Migrate's advisory lock, so that its CLI and this runner exclude each other. */
const PRISMA_LOCK = 72707369;

export type Migration = { name: string; sql: string; checksum: string };

/** Returns the migrations of a directory in order: one folder each, containing `migration.sql`. */
export async function readMigrations(dir: string): Promise<Migration[]> {
  const names = (await readdir(dir, { withFileTypes: true })).filter((e) => e.isDirectory()).map((e) => e.name);
  return Promise.all(
    names.toSorted().map(async (name) => {
      const sql = await readFile(join(dir, name, "migration.sql"), "utf8");
      return { name, sql, checksum: createHash("sha256").update(sql).digest("hex") };
    }),
  );
}

/**
 * Applies the missing migrations and returns their names. Runners may start concurrently. Uses the ledger of Prisma
 * Migrate, so its CLI agrees. A migration file is one implicit transaction.
 *
 * Throws if the database's first migration is not the directory's first one, and an error with the name of a migration
 * that failed before, or was edited after it was applied. Migrations that the directory does not contain are accepted:
 * the next release may already run.
 */
export async function migrate(url: string, dir: string): Promise<string[]> {
  const migrations = await readMigrations(dir);
  const db = new Client({ connectionString: url, application_name: "migrate" });
  db.on("error", () => {}); // the running statement reports it
  await db.connect();
  try {
    await db.query("SELECT pg_advisory_lock($1)", [PRISMA_LOCK]);
    await db.query(LEDGER);
    await rejectOtherHistory(db, migrations[0]);
    const applied: string[] = [];
    for (const migration of migrations) {
      if (await isApplied(db, migration)) continue;
      await apply(db, migration);
      applied.push(migration.name);
    }
    return applied;
  } finally {
    await db.end();
  }
}

/** Throws if the database has migrations, but not the first one of the directory. */
async function rejectOtherHistory(db: Client, first: Migration | undefined): Promise<void> {
  const { rows } = await db.query<{ database: string; applied: string; known: boolean }>(
    `SELECT current_database() AS database,
            min(migration_name) AS applied,
            bool_or(migration_name = $1 AND (checksum = $2 OR finished_at IS NULL)) AS known
       FROM _prisma_migrations
      WHERE rolled_back_at IS NULL
     HAVING count(*) > 0`,
    [first?.name, first?.checksum],
  );
  const [history] = rows;
  if (history && !history.known)
    throw new Error(
      `Database ${history.database} was made by a development version before 0.1.0 (migration ${history.applied}) and ` +
        "cannot be upgraded. Export what you need with the version that made it, then start this version with an empty " +
        "database; a standalone platform needs another data directory (MILLWRIGHT_DATA_DIR).",
    );
}

async function isApplied(db: Client, { name, checksum }: Migration): Promise<boolean> {
  const { rows } = await db.query<{ checksum: string; finished_at: Date | null }>(
    "SELECT checksum, finished_at FROM _prisma_migrations WHERE migration_name = $1 AND rolled_back_at IS NULL",
    [name],
  );
  const entry = rows[0];
  if (!entry) return false;
  if (!entry.finished_at)
    throw new Error(`Migration ${name} failed before: fix it, then mark it rolled back (prisma migrate resolve).`);
  if (entry.checksum !== checksum)
    throw new Error(`Migration ${name} was edited after it was applied: add a new migration instead.`);
  return true;
}

async function apply(db: Client, { name, sql, checksum }: Migration): Promise<void> {
  const id = randomUUID();
  await db.query("INSERT INTO _prisma_migrations (id, checksum, migration_name) VALUES ($1, $2, $3)", [
    id,
    checksum,
    name,
  ]);
  try {
    await db.query(sql);
  } catch (cause) {
    await db.query("UPDATE _prisma_migrations SET logs = $2 WHERE id = $1", [id, String(cause)]);
    throw new Error(`Migration ${name} failed: ${String(cause)}`, { cause });
  }
  await db.query("UPDATE _prisma_migrations SET finished_at = now(), applied_steps_count = 1 WHERE id = $1", [id]);
}

/** Creates database `name` on the server of `adminUrl` unless it exists, and returns its URL. */
export async function ensureDatabase(adminUrl: string, name: string): Promise<string> {
  const db = new Client({ connectionString: adminUrl });
  await db.connect();
  try {
    const { rowCount } = await db.query("SELECT 1 FROM pg_database WHERE datname = $1", [name]);
    if (rowCount === 0) await db.query(`CREATE DATABASE ${escapeIdentifier(name)}`);
  } catch (error) {
    // Another process was faster: duplicate_database, or the unique index of pg_database.
    if (!["42P04", "23505"].includes((error as { code?: string }).code ?? "")) throw error;
  } finally {
    await db.end();
  }
  const url = new URL(adminUrl);
  url.pathname = `/${encodeURIComponent(name)}`;
  return url.href;
}
