import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { migrationsDir as gatewayMigrations } from "@millwright/gateway/compose";
import { migrationsDir as metricsMigrations } from "@millwright/metrics/compose";
import { testDatabase } from "@millwright/testing";
import { admin } from "./support/admin.ts";

type TestDatabase = Awaited<ReturnType<typeof testDatabase>>;
let [gateway, metrics]: TestDatabase[] = [];
beforeAll(async () => {
  [gateway, metrics] = await Promise.all([testDatabase(gatewayMigrations), testDatabase(metricsMigrations)]);
});
afterAll(async () => {
  await Promise.all([gateway?.close(), metrics?.close()]);
});

describe("the command line", () => {
  test.each(["", "--help", "-h"])("lists all commands for %p", async (line) => {
    const { code, printed } = await admin(line);
    expect(code).toBe(0);
    for (const command of ["doctor", "migrate [APP...]", "owner-key [EMAIL]", "rebuild metrics"])
      expect(printed).toContain(command);
  });

  test.each(["doctor", "migrate", "owner-key", "rebuild metrics"])("explains %s", async (command) => {
    const { code, printed } = await admin(`${command} --help`);
    expect([code, printed.split("\n")[0]?.startsWith(`usage: millwright-admin ${command}`)]).toEqual([0, true]);
    expect(printed).toContain("DATABASE_URL");
  });

  test.each([
    ["rebuild", 'Unknown command "rebuild".'],
    ["rebuild costs", 'Unknown command "rebuild costs".'],
    ["rebuild metrics now", 'Unexpected argument "now".'],
    ["owner-key ada@example.com more", 'Unexpected argument "more".'],
    ["migrate --fast", "--fast"],
    ["migrate nothing", "No migrations for nothing."],
  ])("refuses %s", async (line, message) => {
    const { code, printed, errors } = await admin(line);
    expect([code, printed]).toEqual([2, ""]);
    expect(errors).toContain(message);
  });
});

describe("doctor", () => {
  const named = (url: string) =>
    Object.fromEntries(
      ["FACTORIES", "GATEWAY", "METRICS", "ORCHESTRATOR", "SCHEDULER", "SCORING", "WEBHOOK_INGRESS"].map((name) => [
        `${name}_DATABASE_URL`,
        url,
      ]),
    );

  test("checks every database and the files, and exits 0", async () => {
    const directory = await mkdtemp(join(tmpdir(), "millwright-admin-"));
    try {
      const { code, printed } = await admin("doctor --json", {
        ...named(gateway!.url),
        BLOB_DIR: directory,
        MILLWRIGHT_SANDBOX: "none",
      });
      const checks = JSON.parse(printed) as { check: string; problem: string | null }[];
      expect([code, checks.filter(({ problem }) => problem !== null)]).toEqual([0, []]);
      expect(checks.filter(({ check }) => check === "database")).toHaveLength(7);
      expect(checks.map(({ check }) => check)).toContain("files");
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  test("exits 1 and states the remedy if a check fails", async () => {
    const absent = new URL(gateway!.url);
    absent.pathname = "/absent";
    const { code, printed } = await admin("doctor", {
      ...named(gateway!.url),
      SCORING_DATABASE_URL: absent.href,
      MILLWRIGHT_SANDBOX: "none",
    });
    expect(code).toBe(1);
    expect(printed).toContain(
      `database (${absent.protocol}//${absent.host}/absent): database "absent" does not exist.`,
    );
    expect(printed).toContain("Create the database: CREATE DATABASE name OWNER user.");
  });

  test("asks for all databases if some are named", async () => {
    const { GATEWAY_DATABASE_URL: url } = named(gateway!.url);
    const { code, printed } = await admin("doctor", { GATEWAY_DATABASE_URL: url, MILLWRIGHT_SANDBOX: "none" });
    expect([code, printed]).toEqual([1, expect.stringContaining("Set FACTORIES_DATABASE_URL, METRICS_DATABASE_URL")]);
  });

  test("passes before the first start in a directory that can be written", async () => {
    const directory = await mkdtemp(join(tmpdir(), "millwright-admin-"));
    try {
      const env = { MILLWRIGHT_DATA_DIR: join(directory, "data"), MILLWRIGHT_SANDBOX: "none" };
      expect(await admin("doctor", env)).toMatchObject({ code: 0, printed: expect.stringContaining("data directory") });
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});

describe("migrate", () => {
  test("brings the named app's database up to date", async () => {
    expect(await admin("migrate metrics", { DATABASE_URL: metrics!.url })).toEqual({
      code: 0,
      printed: "metrics: up to date",
      errors: "",
    });
  });

  test("rejects a database of a version before 0.1.0 and states the remedy", async () => {
    const former = await testDatabase(metricsMigrations);
    try {
      await former.database.sql.query("UPDATE _prisma_migrations SET checksum = 'other'");
      const { code, errors } = await admin("migrate metrics", { DATABASE_URL: former.url });
      expect(code).toBe(1);
      expect(errors).toContain("was made by a development version before 0.1.0 (migration 0001_init)");
      expect(errors).toContain("start this version with an empty database");
    } finally {
      await former.close();
    }
  });

  test.each(["migrate", "migrate metrics gateway"])("refuses %s with one database", async (line) => {
    expect(await admin(line, { DATABASE_URL: metrics!.url })).toMatchObject({ code: 2, printed: "" });
  });
});

describe("owner-key", () => {
  test("fails while there is no administrator", async () => {
    expect(await admin("owner-key", { DATABASE_URL: gateway!.url })).toEqual({
      code: 1,
      printed: "",
      errors: "No platform administrator owns a team. Start the platform once, then create the key.",
    });
  });

  test("fails in a directory without a platform, and creates nothing there", async () => {
    const directory = await mkdtemp(join(tmpdir(), "millwright-admin-"));
    try {
      const { code, errors } = await admin("owner-key", { MILLWRIGHT_DATA_DIR: directory });
      expect([code, errors]).toEqual([1, expect.stringContaining(`There is no platform in ${directory}`)]);
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});

test("rebuild metrics fails while the service is not connected", async () => {
  const { code, printed, errors } = await admin("rebuild metrics", { DATABASE_URL: metrics!.url });
  expect([code, printed]).toEqual([1, ""]);
  expect(errors).toContain("The metrics service is not connected to this database");
});
