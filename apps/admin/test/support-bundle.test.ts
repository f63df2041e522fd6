import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { describeSettings, type Settings } from "@millwright/config";
import { settings as orchestrator } from "@millwright/orchestrator/config";
import { settings as standalone } from "@millwright/standalone/config";
import { newUid } from "@millwright/ids";
import { testDatabase, type TestDatabase } from "@millwright/testing";
import { createLogger } from "@millwright/telemetry";
import { Vault } from "@millwright/vault";
import { migrationsOf, servicesWithDatabase } from "../src/platform.ts";
import { admin, namedDatabases } from "./support/admin.ts";

const CANARY = "canary7f3a";
const databases: Record<string, TestDatabase> = {};
let dir: string;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "millwright-bundle-"));
  for (const service of servicesWithDatabase()) databases[service] = await testDatabase(migrationsOf(service));
  await plant();
});
afterAll(async () => {
  await Promise.all(Object.values(databases).map((database) => database.close()));
  rmSync(dir, { recursive: true, force: true });
});

const query = (service: string, text: string, values: unknown[] = []) =>
  databases[service]!.database.sql.query(text, values);

/** Writes the canary into secrets, prompts, payloads, names, addresses, errors and logs. */
async function plant(): Promise<void> {
  const [team, user, secret] = [newUid(), newUid(), newUid()];
  const sealed = Vault.fromMasterKey(new Uint8Array(32).fill(7)).seal(CANARY, `secret:${secret}`);
  await query("gateway", "INSERT INTO teams (uid, name) VALUES ($1, $2)", [team, CANARY]);
  await query("gateway", "INSERT INTO users (uid, email, display_name) VALUES ($1, $2, $3)", [
    user,
    `${CANARY}@example.com`,
    CANARY,
  ]);
  await query(
    "gateway",
    "INSERT INTO managed_secrets (uid, team_uid, name, sealed, updated_by) VALUES ($1, $2, 'TOKEN', $3, 'somebody')",
    [secret, team, sealed],
  );
  await query(
    "gateway",
    "INSERT INTO agents (uid, team_uid, name, agent_type, prompt) VALUES ($1, $2, $3, 'CUSTOM', $3)",
    [newUid(), team, CANARY],
  );
  await query(
    "metrics",
    `INSERT INTO stream.dead_lettered_events (reader, source, position, entity, entity_uid, event, reason)
     VALUES ('metrics', 'orchestrator', 7, 'run', $1, $2, $3)`,
    [newUid(), { type: "millwright.run.finished.v1", payload: CANARY }, `DomainError: prompt ${CANARY}`],
  );
  await query(
    "factories",
    `INSERT INTO stream.work_items (kind, key, payload, state, due_at, last_error, created_at)
     VALUES ('dispatch', $1, $2, 'dead_lettered', now(), $3, now())`,
    [CANARY, { prompt: CANARY }, `TypeError: ${CANARY}`],
  );

  mkdirSync(join(dir, "logs"));
  const lines: string[] = [];
  const log = createLogger({ service: "gateway", destination: { write: (line: string) => void lines.push(line) } });
  log.error({ operation: "GET /api/v1/team", outcome: "failed", error: new Error(CANARY) }, "request failed");
  writeFileSync(
    join(dir, "logs", "millwright.log"),
    [
      ...lines.map((line) => line.trim()),
      JSON.stringify({ message: "odd", prompt: CANARY, operation: `{${CANARY}}` }),
      CANARY,
    ].join("\n"),
  );
  mkdirSync(join(dir, "logs", "workspace"));
  writeFileSync(join(dir, "logs", "workspace", "agent.log"), CANARY);
}

/** Every known variable with the canary as its value, and some that no one knows. */
const environment = (): Record<string, string> => ({
  ...Object.fromEntries(
    [standalone, orchestrator].flatMap((settings: Settings) =>
      describeSettings(settings).map(({ name }) => [name, CANARY]),
    ),
  ),
  SOMETHING_ELSE: CANARY,
  MILLWRIGHT_SANDBOX: "none",
  MILLWRIGHT_WORKER_SLOTS: "12",
  MILLWRIGHT_DATA_DIR: join(dir, "data"),
  ...namedDatabases(databases),
});

function unpack(archive: string): Record<string, string> {
  const target = mkdtempSync(join(dir, "unpacked-"));
  execFileSync("tar", ["-xzf", archive, "-C", target]);
  return Object.fromEntries(
    readdirSync(target, { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile())
      .map((entry) => [
        join(entry.parentPath, entry.name)
          .split("/")
          .slice(target.split("/").length + 1)
          .join("/"),
        readFileSync(join(entry.parentPath, entry.name), "utf8"),
      ]),
  );
}

test("a bundle has what support needs, and no canary that was planted in secrets, prompts, settings and logs", async () => {
  const archive = join(dir, "bundle.tar.gz");
  const { code, printed, errors } = await admin(
    `support-bundle --out ${archive} --logs ${join(dir, "logs")}`,
    environment(),
  );
  expect([code, errors]).toEqual([0, ""]);
  expect(printed).toContain(archive);
  const files = unpack(archive);
  expect(Object.keys(files).toSorted()).toEqual([
    "databases.json",
    "health.json",
    "logs/millwright.log",
    "settings.json",
    "versions.json",
  ]);
  for (const [name, content] of Object.entries(files)) expect([name, content.includes(CANARY)]).toEqual([name, false]);
  const text = Object.values(files).join("\n");
  expect(text).not.toContain("example.com");
  expect(text).not.toContain("v1."); // the beginning of sealed records

  const settings = JSON.parse(files["settings.json"]!) as Record<string, string>;
  expect(settings).toMatchObject({
    MILLWRIGHT_WORKER_SLOTS: "12",
    MILLWRIGHT_SANDBOX: "none",
    ANTHROPIC_API_KEY: "set",
    MILLWRIGHT_MODEL_ALIASES: "set",
  });
  expect(settings).not.toHaveProperty("SOMETHING_ELSE");
  const state = JSON.parse(files["databases.json"]!) as Record<string, Record<string, unknown>>;
  expect(Object.keys(state)).toEqual(servicesWithDatabase());
  expect(state["metrics"]).toMatchObject({
    migrations: expect.arrayContaining([expect.objectContaining({ name: "0001_init" })]),
    dead_lettered_events: [
      expect.objectContaining({ entity: "run", type: "millwright.run.finished.v1", error: "DomainError", events: "1" }),
    ],
  });
  expect(state["factories"]).toMatchObject({
    work: [expect.objectContaining({ kind: "dispatch", state: "dead_lettered", error: "TypeError" })],
  });
  const [line = "{}"] = files["logs/millwright.log"]!.split("\n");
  expect(JSON.parse(line)).toMatchObject({
    operation: "GET /api/v1/team",
    message: "request failed",
    error: { name: "Error", frames: expect.arrayContaining([expect.stringContaining("support-bundle.test.ts")]) },
  });
});

test("a bundle is made even if no database responds", async () => {
  const archive = join(dir, "broken.tar.gz");
  const absent = Object.fromEntries(
    Object.keys(namedDatabases(databases)).map((name) => [name, "postgres://ada:hunter2@127.0.0.1:1/nothing"]),
  );
  expect(await admin(`support-bundle --out ${archive}`, { ...environment(), ...absent })).toMatchObject({ code: 0 });
  const files = unpack(archive);
  expect(JSON.parse(files["databases.json"]!)).toMatchObject({ metrics: { error: "ECONNREFUSED" } });
  expect(Object.values(files).join("\n")).not.toContain("hunter2");
});

test("a directory of logs that does not exist is wrong usage", async () => {
  expect(await admin("support-bundle --logs /nowhere", environment())).toMatchObject({ code: 2 });
});
