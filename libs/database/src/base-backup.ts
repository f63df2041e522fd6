import { copyFile, mkdir, open, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Client } from "pg";

/**
 * Directories whose content PostgreSQL does not need, or must not find, in a copy; `pg_wal` gets only the segments that
 * the copy needs.
 */
const EMPTY_IN_COPY = new Set([
  "pg_dynshmem",
  "pg_notify",
  "pg_replslot",
  "pg_serial",
  "pg_snapshots",
  "pg_stat_tmp",
  "pg_subtrans",
  "pg_wal",
]);
const NOT_IN_COPY = /^(?:postmaster\.(?:pid|opts)|backup_label.*|tablespace_map.*|pg_internal\.init.*|pgsql_tmp.*)$/;
/** Copied last, so that no copied file is older than it. */
const CONTROL_FILE = join("global", "pg_control");
const WAL_SEGMENT = /^[0-9A-F]{24}$/;

export type BaseBackup = {
  /** Connects as a superuser to the running server of `pgData`. */
  readonly url: string;
  /** The server's data directory, readable by this process. */
  readonly pgData: string;
  /** Must not exist; on success, a data directory that a server of the same major release can start with. */
  readonly target: string;
};

/**
 * Copies the data directory of a running server: all databases at one instant, while the server continues to work. Uses
 * PostgreSQL's low-level backup API; a replication slot retains the log that is written during the copy.
 *
 * Errors: those of the server and of the file system; `target` is then incomplete.
 */
export async function takeBaseBackup({ url, pgData, target }: BaseBackup): Promise<void> {
  const session = new Client({ connectionString: url, keepAlive: true });
  session.on("error", () => {}); // reported by the statement that needs the connection
  await session.connect();
  try {
    await session.query("SELECT pg_create_physical_replication_slot($1, true, true)", [`backup_${process.pid}`]);
    const start = await firstRow<{ wal: string }>(
      session,
      "SELECT pg_walfile_name(pg_backup_start('millwright backup', true)) AS wal",
    );
    await copyDirectory(pgData, target, "");
    await copyFileDurably(join(pgData, CONTROL_FILE), join(target, CONTROL_FILE));
    const stop = await firstRow<{ wal: string; label: string }>(
      session,
      "SELECT pg_walfile_name(lsn) AS wal, labelfile AS label FROM pg_backup_stop(false)",
    );
    await copyLog(pgData, target, start.wal, stop.wal);
    await writeDurably(join(target, "backup_label"), stop.label);
  } finally {
    await session.end(); // ends the backup mode and drops the slot in any case
  }
}

async function firstRow<T>(session: Client, text: string): Promise<T> {
  const { rows } = await session.query(text);
  return rows[0] as T;
}

async function copyDirectory(pgData: string, target: string, path: string): Promise<void> {
  await mkdir(join(target, path), { mode: 0o700 });
  if (EMPTY_IN_COPY.has(path)) return;
  for (const entry of await readdir(join(pgData, path), { withFileTypes: true }).catch(whenGone)) {
    const name = join(path, entry.name);
    if (NOT_IN_COPY.test(entry.name) || name === CONTROL_FILE) continue;
    if (entry.isDirectory()) await copyDirectory(pgData, target, name);
    else if (entry.isFile()) await copyFileDurably(join(pgData, name), join(target, name)).catch(whenGone);
    else
      throw new Error(
        `${join(pgData, name)} is neither a file nor a directory; clusters with tablespaces are not supported.`,
      );
  }
}

/** Copies the write-ahead log segments that a server needs to make the copy consistent. Errors: a missing segment. */
async function copyLog(pgData: string, target: string, first: string, last: string): Promise<void> {
  await mkdir(join(target, "pg_wal", "archive_status"), { recursive: true, mode: 0o700 });
  await mkdir(join(target, "pg_wal", "summaries"), { recursive: true, mode: 0o700 });
  const names = await readdir(join(pgData, "pg_wal"));
  const needed = names.filter(
    (name) => (WAL_SEGMENT.test(name) && name >= first && name <= last) || name.endsWith(".history"),
  );
  if (!needed.includes(first) || !needed.includes(last))
    throw new Error(`The write-ahead log from ${first} to ${last} is incomplete.`);
  for (const name of needed) await copyFileDurably(join(pgData, "pg_wal", name), join(target, "pg_wal", name));
}

/**
 * Copies a file, readable by its owner only, and waits until it is on disk. Errors: those of the file system, such as
 * ENOENT.
 */
export async function copyFileDurably(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 });
  await copyFile(from, to);
  const file = await open(to, "r+");
  try {
    await file.chmod(0o600);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Tables and their files can be dropped during the copy; replaying the log removes them from the copy, too. */
function whenGone(error: NodeJS.ErrnoException): never[] {
  if (error.code !== "ENOENT") throw error;
  return [];
}
