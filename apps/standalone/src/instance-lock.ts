import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Thrown if a running platform uses the data directory. */
export class DataDirectoryLocked extends Error {
  constructor(pid: number, dataDir: string) {
    super(`Another platform (process ${pid}) uses ${dataDir}. Stop it, or set MILLWRIGHT_DATA_DIR.`);
    this.name = "DataDirectoryLocked";
  }
}

/**
 * Locks a data directory for this process and returns a function that releases it. Two platforms on one directory would
 * stop each other's database. The lock of a dead process is taken over.
 *
 * Errors: DataDirectoryLocked, with the id of the process that has the lock.
 */
export function lockDataDirectory(dataDir: string): () => void {
  const path = join(dataDir, "standalone.pid");
  for (;;) {
    try {
      writeFileSync(path, String(process.pid), { flag: "wx", mode: 0o600 });
      return () => rmSync(path, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const holder = Number(read(path));
    if (holder > 0 && isPlatform(holder)) throw new DataDirectoryLocked(holder, dataDir);
    rmSync(path, { force: true });
  }
}

/** Returns whether the process is a running standalone platform. Where /proc is absent, any running process counts. */
function isPlatform(pid: number): boolean {
  if (pid === process.pid) return false; // the pid was reused: the lock is of an earlier process
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  const command = read(`/proc/${pid}/cmdline`);
  return command === undefined || command.includes("standalone");
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
