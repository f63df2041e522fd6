import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { Database } from "@millwright/database";
import { migrationsDir } from "@millwright/scheduler/compose";
import { createLogger } from "@millwright/telemetry";
import { eventually } from "@millwright/testing";
import { loadConfig } from "../src/config.ts";
import { prepareDatabase, startDatabases } from "../src/databases.ts";

test("the embedded server is used over its Unix socket; killed, it is restarted at the same address with all committed data", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "databases-")); // short: the path of a socket is limited
  const pid = async () =>
    Number((await readFile(join(dataDir, "postgres/cluster/postmaster.pid"), "utf8")).split("\n")[0]);
  const databases = await startDatabases(
    loadConfig({ MILLWRIGHT_DATA_DIR: dataDir }),
    createLogger({ service: "test", level: "silent" }),
  );
  const url = databases.url("none").replace(/[^/]+$/, "postgres");
  const database = Database.open(url, { max: 1, applicationName: "test" });
  try {
    await database.sql.query("CREATE TABLE committed_rows AS SELECT 1 AS one");
    expect((await database.sql.query("SELECT inet_server_addr() AS address")).rows).toEqual([{ address: null }]);
    const first = await pid();
    process.kill(first, "SIGKILL");
    await eventually(async () => {
      expect(await pid()).not.toBe(first);
      expect((await database.sql.query("SELECT one FROM committed_rows")).rows).toEqual([{ one: 1 }]);
    });
    expect(databases.url("none")).toBe(url.replace(/[^/]+$/, "millwright_none"));
  } finally {
    await database.close();
    await databases.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
});

test("rejects a data directory of a version before 0.1.0 and states the remedy", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "millwright-databases-"));
  const databases = await startDatabases(
    loadConfig({ MILLWRIGHT_DATA_DIR: dataDir }),
    createLogger({ service: "test", level: "silent" }),
  );
  try {
    const url = await prepareDatabase(databases, "scheduler", migrationsDir);
    expect(await prepareDatabase(databases, "scheduler", migrationsDir)).toBe(url);
    const database = Database.open(url, { max: 1, applicationName: "test" });
    await database.sql.query("UPDATE _prisma_migrations SET migration_name = '0001_runs'");
    await database.close();
    await expect(prepareDatabase(databases, "scheduler", migrationsDir)).rejects.toThrow(
      /millwright_scheduler was made by a development version before 0\.1\.0 .* another data directory \(MILLWRIGHT_DATA_DIR\)/,
    );
  } finally {
    await databases.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
});

test("names the server that cannot be used, also by the directory of its socket", async () => {
  const databases = (server: string) => ({ url: () => `postgresql://user:password@${server}/x`, stop: async () => {} });
  for (const [server, name] of [
    ["%2Fno%2Fsuch%20directory:5432", "/no/such directory:5432"],
    ["127.0.0.1:1", "127.0.0.1:1"],
  ] as const)
    await expect(prepareDatabase(databases(server), "scheduler", migrationsDir)).rejects.toThrow(
      `The PostgreSQL server at ${name} cannot be used: connect `,
    );
});
