import { createHash, randomUUID } from "node:crypto";
import { Client } from "pg";
import { Database, ensureDatabase, migrate, readMigrations } from "@millwright/database";

/** Returns the URL of a database on the PostgreSQL server of this test run. */
export function postgresUrl(database = "postgres"): string {
  const admin = process.env["MILLWRIGHT_TEST_POSTGRES"];
  if (!admin) throw new Error("Run tests through `npm run jest`: its global setup starts PostgreSQL.");
  const url = new URL(admin);
  url.pathname = `/${database}`;
  return url.href;
}

export type TestDatabase = {
  url: string;
  database: Database;
  /** Closes the pool and drops the database. */
  close(): Promise<void>;
};

/**
 * Creates a database with the migrations of `migrationsDir` applied (without: an empty one). The migrations run once
 * per test run, in a template that is cloned.
 */
export async function testDatabase(migrationsDir?: string): Promise<TestDatabase> {
  const name = `test_${randomUUID().replaceAll("-", "")}`;
  const template = migrationsDir === undefined ? "template1" : await ensureTemplate(migrationsDir);
  await administer((db) => db.query(`CREATE DATABASE ${name} TEMPLATE ${template}`));
  const url = postgresUrl(name);
  const database = Database.open(url, { max: 3, applicationName: "test" });
  return {
    url,
    database,
    async close() {
      await database.close();
      await administer((db) => db.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
    },
  };
}

async function ensureTemplate(migrationsDir: string): Promise<string> {
  const checksums = (await readMigrations(migrationsDir)).map(({ name, checksum }) => name + checksum);
  const template = `template_${createHash("sha256").update(checksums.join()).digest("hex").slice(0, 24)}`;
  await administer(async (db) => {
    await db.query("SELECT pg_advisory_lock(hashtext($1))", [template]);
    const { rowCount } = await db.query("SELECT 1 FROM pg_database WHERE datname = $1", [template]);
    if (rowCount !== 0) return;
    const draft = `draft_${randomUUID().replaceAll("-", "")}`; // renamed when whole: a half-migrated one is never cloned
    await migrate(await ensureDatabase(postgresUrl(), draft), migrationsDir);
    await db.query(`ALTER DATABASE ${draft} RENAME TO ${template}`);
  });
  return template;
}

async function administer(f: (db: Client) => Promise<unknown>): Promise<void> {
  const db = new Client({ connectionString: postgresUrl() });
  await db.connect();
  try {
    await f(db);
  } finally {
    await db.end();
  }
}
