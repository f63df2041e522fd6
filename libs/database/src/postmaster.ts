import { readFileSync } from "node:fs";
import { readFile, realpath } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";

/** What a running server wrote into `postmaster.pid`. */
export type Postmaster = { pid: number; port: number; status: string };

/** Reads the lock file of a data directory. Absent or still half written: undefined. */
export async function readPostmaster(pgData: string): Promise<Postmaster | undefined> {
  const text = await readFile(join(pgData, "postmaster.pid"), "utf8").catch(() => "");
  const lines = text.split("\n");
  const [pid, port] = [Number(lines[0]), Number(lines[3])];
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  return { pid, port: Number.isInteger(port) ? port : 0, status: (lines[7] ?? "").trim() };
}

/**
 * Whether `pid` is a server of this data directory. After a reboot the number may belong to any process, so its
 * command line decides where the system shows it.
 */
export function isPostmasterOf(pid: number, pgData: string): boolean {
  if (!isAlive(pid)) return false;
  if (process.platform !== "linux") return true;
  return commandLine(pid).split("\0").includes(pgData);
}

/** Whether a server that accepts connections on `url` serves exactly this data directory. */
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

/** Whether a process lives; a zombie that nobody collects is dead. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
  return process.platform !== "linux" || commandLine(pid) !== "";
}

/** Empty for a zombie and for a process that is gone. */
function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}
