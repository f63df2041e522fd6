import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { testDatabase, type TestDatabase } from "@millwright/testing";
import { migrationsOf, servicesWithDatabase } from "../src/platform.ts";
import { STREAM_TABLES, TEAM_TABLES } from "../src/team/team-tables.ts";

const databases: Record<string, TestDatabase> = {};
beforeAll(async () => {
  for (const service of servicesWithDatabase()) databases[service] = await testDatabase(migrationsOf(service));
});
afterAll(async () => {
  await Promise.all(Object.values(databases).map((database) => database.close()));
});

test("the tables of every service have a rule for the rows of a team", async () => {
  for (const service of servicesWithDatabase()) {
    const { rows } = await databases[service]!.database.sql.query<{ name: string }>(
      `SELECT CASE n.nspname WHEN 'public' THEN relname ELSE n.nspname || '.' || relname END AS name
         FROM pg_class c
         JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname IN ('public', 'stream')
          AND relname <> '_prisma_migrations'`,
    );
    const known = { ...STREAM_TABLES, ...TEAM_TABLES[service] };
    expect([service, rows.map(({ name }) => name).filter((name) => !(name in known))]).toEqual([service, []]);
    const existing = new Set(rows.map(({ name }) => name));
    expect([service, Object.keys(TEAM_TABLES[service]!).filter((name) => !existing.has(name))]).toEqual([service, []]);
  }
});

test("every rule is valid SQL for its table", async () => {
  const scope = { team: newUid(), factories: [newUid()], agents: [newUid()], members: [newUid()], users: [] };
  const found = Object.entries(TEAM_TABLES).flatMap(([service, tables]) =>
    Object.entries(tables).flatMap(([table, rowsOf]) =>
      rowsOf ? [databases[service]!.database.sql.query(`SELECT 1 FROM ${table} WHERE ${rowsOf(scope)}`)] : [],
    ),
  );
  expect((await Promise.all(found)).flatMap(({ rows }) => rows)).toEqual([]);
});
