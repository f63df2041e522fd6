import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

const POLL_MS = 5;

/** Whether a process still runs; one that waits to be collected by its parent does not. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
  if (process.platform !== "linux") return true;
  const state = fieldsOf(pid)?.[0];
  return state !== undefined && state !== "Z" && state !== "X";
}

/** Tells a process from a later one with the same id; undefined where it cannot be known. */
export const startOf = (pid: number): string | undefined => fieldsOf(pid)?.[19];

/** Resolves when the process runs no more (or its id has gone to another one). */
export async function untilGone(pid: number, start = startOf(pid)): Promise<void> {
  while (isRunning(pid) && startOf(pid) === start) await pause(POLL_MS);
}

/** Fields of /proc/<pid>/stat from the third, the state, on. */
function fieldsOf(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined;
  }
}

/** Sends a signal to a process, or with a negative id to a group; says whether there was one. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}

/**
 * Processes that carry this variable in their environment, wherever they have moved to (`setsid` included). The way to find what a sandbox of
 * kind `none` left; Linux only, elsewhere nothing is found.
 */
export function processesWith(variable: string): number[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").map(Number).filter((pid) => Number.isInteger(pid) && pid !== process.pid && environmentOf(pid).includes(variable) && isRunning(pid));
}

function environmentOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
  } catch {
    return [];
  }
}
