import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { ensureDatabase, migrate } from "@millwright/database";
import { postgresUrl, testDatabase } from "@millwright/testing";
import type { TestDatabase } from "@millwright/testing";

let t: TestDatabase;
let dir: string;
beforeEach(async () => {
  t = await testDatabase();
  dir = await mkdtemp(join(tmpdir(), "migrations-"));
  await add("0001_init", "CREATE TABLE things (n int); -- one; two\nINSERT INTO things VALUES (1);");
  await add("0002_more", "INSERT INTO things VALUES (2);");
});
afterEach(async () => {
  await t.close();
  await rm(dir, { recursive: true });
});

async function add(name: string, sql: string): Promise<void> {
  await mkdir(join(dir, name), { recursive: true });
  await writeFile(join(dir, name, "migration.sql"), sql);
}
const readRows = async () =>
  (await t.database.sql.query<{ n: number }>("SELECT n FROM things ORDER BY n")).rows.map((row) => row.n);

test("migrations are applied in order, each once", async () => {
  expect(await migrate(t.url, dir)).toEqual(["0001_init", "0002_more"]);
  expect(await migrate(t.url, dir)).toEqual([]);
  await add("0003_last", "INSERT INTO things VALUES (3);");
  expect(await migrate(t.url, dir)).toEqual(["0003_last"]);
  expect(await readRows()).toEqual([1, 2, 3]);
});

test("concurrent runners apply migrations once", async () => {
  const applied = await Promise.all([1, 2, 3, 4].map(() => migrate(t.url, dir)));
  expect(applied.flat()).toEqual(["0001_init", "0002_more"]);
  expect(await readRows()).toEqual([1, 2]);
});

test("an edited migration is rejected by name", async () => {
  await migrate(t.url, dir);
  await add("0002_more", "INSERT INTO things VALUES (22);");
  await expect(migrate(t.url, dir)).rejects.toThrow("0002_more was edited");
});

test.each([
  ["the first one has another name", "0001_things"],
  ["the first one has another text", "0001_init"],
])("a database with other migrations is rejected and not changed if %s", async (_, name) => {
  await migrate(t.url, dir);
  await rm(dir, { recursive: true });
  await add(name, "CREATE TABLE things (n bigint);");
  await add("0003_last", "INSERT INTO things VALUES (3);");
  const { database } = (await t.database.sql.query<{ database: string }>("SELECT current_database() AS database"))
    .rows[0]!;
  await expect(migrate(t.url, dir)).rejects.toThrow(
    `Database ${database} was made by a development version before 0.1.0 (migration 0001_init) and cannot be upgraded.`,
  );
  expect(await readRows()).toEqual([1, 2]);
});

test("migrations of a newer release are ignored", async () => {
  await add("0003_next", "INSERT INTO things VALUES (3);");
  await migrate(t.url, dir);
  await rm(join(dir, "0003_next"), { recursive: true });
  expect(await migrate(t.url, dir)).toEqual([]);
});

test("a failed migration leaves only its record, and stops the next start until it is resolved", async () => {
  await add("0003_bad", "INSERT INTO things VALUES (3); SELECT 1 / 0;");
  await expect(migrate(t.url, dir)).rejects.toThrow("0003_bad failed: error: division by zero");
  await expect(migrate(t.url, dir)).rejects.toThrow("0003_bad failed before");
  expect(await readRows()).toEqual([1, 2]);
  const { rows } = await t.database.sql.query(
    "SELECT migration_name, finished_at, logs FROM _prisma_migrations WHERE logs IS NOT NULL",
  );
  expect(rows).toEqual([{ migration_name: "0003_bad", finished_at: null, logs: "error: division by zero" }]);

  await t.database.sql.query("UPDATE _prisma_migrations SET rolled_back_at = now() WHERE migration_name = '0003_bad'");
  await add("0003_bad", "INSERT INTO things VALUES (3);");
  expect(await migrate(t.url, dir)).toEqual(["0003_bad"]);
  expect(await readRows()).toEqual([1, 2, 3]);
});

test("concurrent runners create a database once", async () => {
  const name = `made_${process.pid}`;
  const urls = await Promise.all([1, 2, 3].map(() => ensureDatabase(postgresUrl(), name)));
  expect(new Set(urls)).toEqual(new Set([postgresUrl(name)]));
  await t.database.sql.query(`DROP DATABASE ${name}`);
});
