import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { migrate, readMigrations } from "@millwright/database";
import { describeRows, describeSchema, testDatabase } from "@millwright/testing";
import type { TestDatabase } from "@millwright/testing";
import { prisma } from "./prisma.mjs";

const root = join(import.meta.dirname, "../..");
const apps = readdirSync(join(root, "apps")).filter((app) =>
  existsSync(join(root, "apps", app, "prisma/schema.prisma")),
);

let t: TestDatabase;
beforeEach(async () => {
  t = await testDatabase();
});
afterEach(() => t.close());

describe.each(apps)("the migrations of %s", (app) => {
  const dir = join(root, "apps", app);
  const migrations = join(dir, "prisma/migrations");

  test("make the database that the Prisma schema describes", async () => {
    await migrate(t.url, migrations);
    const diff = [
      "migrate",
      "diff",
      "--from-config-datasource",
      "--to-schema",
      "prisma/schema.prisma",
      "--script",
      "--exit-code",
    ];
    const { status, output } = prisma(dir, diff, { DATABASE_URL: t.url });
    expect({ status, output: output.replace(/^.*Loaded Prisma config.*$/gm, "").trim() }).toEqual({
      status: 0,
      output: "-- This is an empty migration.",
    });
  });

  test("make the schema and the rows of tools/database/schemas (to update: MILLWRIGHT_WRITE_SCHEMAS=1)", async () => {
    await migrate(t.url, migrations);
    const { sql } = t.database;
    const described = [...(await describeSchema(sql)), ...(await describeRows(sql)), ""].join("\n");
    const file = join(import.meta.dirname, "schemas", `${app}.txt`);
    if (process.env["MILLWRIGHT_WRITE_SCHEMAS"]) writeFileSync(file, described);
    expect(described).toBe(readFileSync(file, "utf8"));
  });

  test("when applied by our runner are applied for Prisma's, and the other way round", async () => {
    const [own, theirs] = [t, await testDatabase()];
    await migrate(own.url, migrations);
    expect(prisma(dir, ["migrate", "deploy"], { DATABASE_URL: own.url }).output).toContain(
      "No pending migrations to apply",
    );
    const deployed = prisma(dir, ["migrate", "deploy"], { DATABASE_URL: theirs.url });
    expect(deployed.output).toContain("successfully applied");
    expect(await migrate(theirs.url, migrations)).toEqual([]);
    await theirs.close();
  });
});

test("released migrations are neither changed nor removed", async () => {
  const released = readFileSync(join(import.meta.dirname, "released-migrations.txt"), "utf8")
    .trim()
    .split("\n");
  const present = await Promise.all(
    apps.map(async (app) =>
      (await readMigrations(join(root, "apps", app, "prisma/migrations"))).map(
        ({ name, checksum }) => `${checksum}  apps/${app}/prisma/migrations/${name}/migration.sql`,
      ),
    ),
  );
  expect(released.length).toBeGreaterThanOrEqual(apps.length);
  expect(released.filter((line) => !present.flat().includes(line))).toEqual([]);
});
