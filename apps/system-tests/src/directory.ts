import { mkdtempSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { killAll, processesWith } from "./processes.ts";

const PREFIX = "millwright-system-";

/** A new directory for a deployment of this process. What killed test runs left behind is removed first. */
export async function newDirectory(): Promise<string> {
  await removeLeftovers();
  return mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-`));
}

/** Removes the deployments of processes that have ended, with their processes; `own`: those of this process, too. */
export async function removeLeftovers(own = false): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const owner = name.startsWith(PREFIX) ? Number(name.slice(PREFIX.length).split("-")[0]) : Number.NaN;
    if (Number.isInteger(owner) && (owner === process.pid ? own : !isAlive(owner)))
      await removeDirectory(join(tmpdir(), name));
  }
}

/** Removes it with every process that knows of it. */
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
