import { mkdtempSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { killAll, processesWith } from "./processes.ts";

const PREFIX = "millwright-system-";

/** Creates a directory for a deployment of this process. Removes first what killed test runs left behind. */
export async function newDirectory(): Promise<string> {
  await removeLeftovers();
  return mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-`));
}

/**
 * Removes the directories and processes of deployments whose test process has ended; with `own`, also those of this
 * process.
 */
export async function removeLeftovers(own = false): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const owner = name.startsWith(PREFIX) ? Number(name.slice(PREFIX.length).split("-")[0]) : Number.NaN;
    if (Number.isInteger(owner) && (owner === process.pid ? own : !isAlive(owner)))
      await removeDirectory(join(tmpdir(), name));
  }
}

/** Removes the directory and kills every process whose command line or environment contains its path. */
export async function removeDirectory(dir: string): Promise<void> {
  killAll(processesWith(dir).map(({ pid }) => pid));
  await rm(dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
