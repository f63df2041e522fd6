import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { Database, EmbeddedPostgres } from "@millwright/database";

/** Returns a secret in the forms to search for: as it is, hexadecimal, Base64 and URL-encoded. */
export const formsOf = (secret: string): string[] => [
  secret,
  Buffer.from(secret).toString("hex"),
  Buffer.from(secret).toString("base64").slice(0, -4),
  encodeURIComponent(secret),
];

/**
 * Returns the places where one of the texts occurs: rows of all tables of all databases, and files below the directory.
 */
export async function findEverywhere(
  place: { readonly dir: string; readonly postgres: string },
  texts: readonly string[],
): Promise<string[]> {
  return [...(await inDatabases(place.postgres, texts)), ...inFiles(place.dir, texts)];
}

/** Returns the tables whose rows contain one of the texts. Uses the platform's own server, which must be running. */
async function inDatabases(directory: string, texts: readonly string[]): Promise<string[]> {
  const server = await EmbeddedPostgres.start({ dataDir: directory });
  if (!server.isAdopted) {
    await server.stop();
    throw new Error("the platform's database was not running");
  }
  const found: string[] = [];
  const names = await withDatabase(server.url("postgres"), (ask) =>
    ask<{ name: string }>("SELECT datname AS name FROM pg_database WHERE datname LIKE 'millwright%'"),
  );
  for (const { name } of names) {
    await withDatabase(server.url(name), async (ask) => {
      const tables = await ask<{ table: string }>(
        `SELECT format('%I.%I', n.nspname, c.relname) AS table FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')`,
      );
      for (const { table } of tables) {
        const rows = await ask<{ row: string }>(
          `SELECT left(t::text, 300) AS row FROM ${table} t WHERE EXISTS (SELECT 1 FROM unnest($1::text[]) AS s (text) WHERE strpos(t::text, s.text) > 0) LIMIT 3`,
          [texts],
        );
        found.push(...rows.map(({ row }) => `${name}.${table}: ${row}`));
      }
    });
  }
  return found;
}

type Ask = <R>(text: string, params?: unknown[]) => Promise<R[]>;

async function withDatabase<T>(url: string, use: (ask: Ask) => Promise<T>): Promise<T> {
  const database = Database.open(url, { max: 1, applicationName: "canaries" });
  try {
    return await use(
      async <R>(text: string, params: unknown[] = []) => (await database.sql.query<R>(text, params)).rows,
    );
  } finally {
    await database.close();
  }
}

/**
 * Returns the files that contain one of the texts, including compressed files: logs, blobs, workspaces and the files of
 * the databases.
 */
function inFiles(dir: string, texts: readonly string[]): string[] {
  const patterns = texts.flatMap((text) => ["-e", text]);
  const plain = execFileSync(
    "sh",
    ["-c", 'dir="$1"; shift; grep -rlaF "$@" "$dir" 2>/dev/null || true', "sh", dir, ...patterns],
    { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 },
  );
  return [
    ...plain.split("\n").filter(Boolean),
    ...filesOf(dir).filter((path) => texts.some((text) => unpacked(path).includes(text))),
  ];
}

function unpacked(path: string): Buffer {
  const bytes = readFileSync(path);
  try {
    return bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : Buffer.alloc(0);
  } catch {
    return Buffer.alloc(0); // The file has the magic number of gzip but is not valid gzip.
  }
}

const filesOf = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, encoding: "utf8" })
    .map((name) => join(dir, name))
    .filter((path) => !path.includes("/postgres/") && statSync(path, { throwIfNoEntry: false })?.isFile());
