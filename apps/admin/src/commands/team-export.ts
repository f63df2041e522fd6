import { createWriteStream, existsSync, readdirSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { openBlobs } from "../blobs.ts";
import { UsageError, type Command } from "../command.ts";
import { hasTable, jsonRows, withClient } from "../databases.ts";
import { withPlatform, type PlatformDatabases } from "../platform.ts";
import { findTeam } from "../team/find-team.ts";
import { teamBlobs } from "../team/team-blobs.ts";
import type { TeamScope } from "../team/team-scope.ts";
import { STREAM_TABLES, TEAM_TABLES } from "../team/team-tables.ts";

/** Columns that are secrets, or hashes of secrets. They are not exported. */
const SECRET_COLUMN = /sealed$|(?:^|_)hash$/;
/** Rows with responses and copies of secrets, which are of use to the platform only. */
const NOT_EXPORTED = new Set([
  "idempotency_keys",
  "team_secrets",
  "rate_windows",
  "metrics_requests",
  "worker_sessions",
]);

export const teamExport: Command = {
  words: "team export",
  args: ["TEAM", "DIRECTORY"],
  summary: "Writes everything that a team has into a new directory: rows as NDJSON per service and table, and files.",
  details: [
    "TEAM: the uid of the team. Secrets and keys are named, and their values are left out.",
    "Files are found in BLOB_DIR, MILLWRIGHT_BLOB_URL or the data directory.",
  ],
  async run({ env, print }, [team = "", directory = ""]) {
    const target = resolve(directory);
    if (existsSync(target) && readdirSync(target).length > 0) throw new UsageError(`${target} is not empty.`);
    await withPlatform(env, async (databases) => {
      const scope = await findTeam(databases, team);
      await mkdir(target, { recursive: true, mode: 0o700 });
      const counts = await exportRows(databases, scope, target);
      const blobs = openBlobs(env);
      let files = 0;
      for await (const key of teamBlobs(databases, scope, blobs)) {
        const blob = await blobs.get(key);
        if (!blob) continue;
        await write(join(target, "files", key), blob.body);
        files += 1;
      }
      const manifest = { team, exportedAt: new Date().toISOString(), rows: counts, files };
      await writeFile(join(target, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 });
      const rows = Object.values(counts).reduce((sum, count) => sum + count, 0);
      print(`Exported  ${target} (${rows} rows, ${files} files)`);
    });
  },
};

/** Writes the team's rows of every table that has any, and returns their number by file. */
async function exportRows(
  databases: PlatformDatabases,
  scope: TeamScope,
  target: string,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const [service, tables] of Object.entries(TEAM_TABLES))
    await withClient(databases[service]!, async (db) => {
      await db.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
      for (const [table, rowsOf] of Object.entries({
        ...tables,
        "stream.event_log": STREAM_TABLES["stream.event_log"],
      })) {
        if (!rowsOf || NOT_EXPORTED.has(table) || !(await hasTable(db, table))) continue;
        const file = `${service}/${table.replace("stream.", "")}.ndjson`;
        let count = 0;
        const lines = async function* () {
          for await (const row of jsonRows(db, `${table} AS t WHERE ${rowsOf(scope)}`)) {
            count += 1;
            yield `${withoutSecrets(row)}\n`;
          }
        };
        await write(join(target, file), Readable.from(lines()));
        counts[file] = count;
      }
    });
  return counts;
}

/** Returns the text of a row without secrets exactly as PostgreSQL wrote it, so that numbers stay exact. */
function withoutSecrets(row: string): string {
  const value = JSON.parse(row) as Record<string, unknown>;
  const names = Object.keys(value).filter((name) => SECRET_COLUMN.test(name));
  if (names.length === 0) return row;
  return JSON.stringify(value, (key, member: unknown) => (names.includes(key) ? undefined : member));
}

async function write(path: string, content: Readable): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await pipeline(content, createWriteStream(path, { mode: 0o600 }));
}
