import { readFileSync } from "node:fs";
import { readFile, realpath } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";

/** The content of a running server's `postmaster.pid`. `socketDir` is empty if the server has no Unix socket. */
export type Postmaster = { pid: number; port: number; socketDir: string; status: string };

/** Reads the lock file of a data directory. Undefined if it is absent or incomplete. */
export async function readPostmaster(pgData: string): Promise<Postmaster | undefined> {
  const text = await readFile(join(pgData, "postmaster.pid"), "utf8").catch(() => "");
  const lines = text.split("\n");
  const [pid, port] = [Number(lines[0]), Number(lines[3])];
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  return {
    pid,
    port: Number.isInteger(port) ? port : 0,
    socketDir: lines[4] ?? "",
    status: (lines[7] ?? "").trim(),
  };
}

/**
 * Returns whether `pid` is a server of this data directory. After a reboot the pid may belong to any process, so its
 * command line decides where the system shows it.
 */
export function isPostmasterOf(pid: number, pgData: string): boolean {
  if (!isAlive(pid)) return false;
  if (process.platform !== "linux") return true;
  return commandLine(pid).split("\0").includes(pgData);
}

/** Returns whether a server that accepts connections on `url` serves exactly this data directory. */
export async function servesDirectory(url: string, pgData: string): Promise<boolean> {
  const db = new Client({ connectionString: url, connectionTimeoutMillis: 2000 });
  db.on("error", () => {});
  try {
    await db.connect();
    const { rows } = await db.query<{ data_directory: string }>("SHOW data_directory");
    return (await realpath(rows[0]?.data_directory ?? "")) === (await realpath(pgData));
  } catch {
    return false;
  } finally {
    await db.end().catch(() => {});
  }
}

/** Returns whether a process is alive; a zombie is dead. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
  return process.platform !== "linux" || commandLine(pid) !== "";
}

/** Empty for a zombie and for an exited process. */
function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}
