import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A running platform uses the data directory. */
export class DirectoryTaken extends Error {
  constructor(pid: number, dataDir: string) {
    super(`Another platform (process ${pid}) uses ${dataDir}. Stop it, or set MILLWRIGHT_DATA_DIR.`);
    this.name = "DirectoryTaken";
  }
}

/**
 * Takes a data directory for this process; answers how to give it back. Two platforms on one directory would stop each
 * other's database. A lock whose process is gone is taken over.
 *
 * Errors: DirectoryTaken, which names the process that has the directory.
 */
export function takeDirectory(dataDir: string): () => void {
  const path = join(dataDir, "standalone.pid");
  for (;;) {
    try {
      writeFileSync(path, String(process.pid), { flag: "wx", mode: 0o600 });
      return () => rmSync(path, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const holder = Number(read(path));
    if (holder > 0 && isPlatform(holder)) throw new DirectoryTaken(holder, dataDir);
    rmSync(path, { force: true });
  }
}

/** Whether the process lives and is a standalone platform; where /proc is absent, living is enough. */
function isPlatform(pid: number): boolean {
  if (pid === process.pid) return false; // our own number, from a life before this one
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
