import { readdirSync, readFileSync, statSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

const POLL_MS = 5;

/** Returns whether a process is running; a zombie is not. */
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

/** Distinguishes a process from a later one with the same id; undefined where this is unknown. */
export const startOf = (pid: number): string | undefined => fieldsOf(pid)?.[19];

/** Resolves when the process has ended (or its id belongs to another one). */
export async function untilGone(pid: number, start = startOf(pid)): Promise<void> {
  while (isRunning(pid) && startOf(pid) === start) await pause(POLL_MS);
}

/** Fields of /proc/<pid>/stat from the third, the state, on. */
function fieldsOf(pid: number): string[] | undefined {
  const stat = textOf(`/proc/${pid}/stat`);
  return stat === "" ? undefined : stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** Sends a signal to a process, or with a negative id to a group; returns whether it existed. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}

/** Returns a process and all its descendants; Linux only. */
export function familyOf(root: number): number[] {
  if (process.platform !== "linux") return [];
  const children = new Map<number, number[]>();
  for (const pid of allProcesses()) {
    const parent = Number(fieldsOf(pid)?.[1]);
    children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const family = [root];
  for (const member of family) family.push(...(children.get(member) ?? []));
  return family;
}

/** Threads of a process, and the memory that is its own (not a file's); nothing of one that has ended. */
export function usageOf(pid: number): { readonly threads: number; readonly bytes: number } {
  const status = textOf(`/proc/${pid}/status`);
  const number = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+)`, "m").exec(status)?.[1] ?? 0);
  return { threads: number("Threads"), bytes: number("RssAnon") * 1024 };
}

/** Processes that the kernel has ended on this machine because memory was used up, since it started. */
export const oomKillsOfMachine = (): number => Number(/^oom_kill (\d+)$/m.exec(textOf("/proc/vmstat"))?.[1] ?? 0);

/** Files that are open in these processes and in no directory any more, and their bytes on disk; not whole when a process does not let its files be seen. */
export function deletedFiles(pids: readonly number[]): {
  readonly bytes: number;
  readonly files: number;
  readonly isWhole: boolean;
} {
  const found = new Map<string, number>();
  for (const path of pids.flatMap((pid) => entriesOf(`/proc/${pid}/fd`))) {
    const file = attempt(() => statSync(path));
    if (file?.isFile() && file.nlink === 0) found.set(`${file.dev}:${file.ino}`, file.blocks * 512);
  }
  return {
    bytes: [...found.values()].reduce((sum, bytes) => sum + bytes, 0),
    files: found.size,
    isWhole: !pids.some(hidesFiles),
  };
}

/**
 * Returns the processes with this variable in their environment, wherever they have moved to (`setsid` included). Finds
 * what a sandbox of kind `none` left; Linux only, elsewhere it finds nothing.
 */
export function processesWith(variable: string): number[] {
  if (process.platform !== "linux") return [];
  return allProcesses().filter((pid) => pid !== process.pid && environmentOf(pid).includes(variable) && isRunning(pid));
}

/** Kills every process with this variable, repeatedly until none remains; Linux only. */
export async function endProcessesWith(variable: string): Promise<void> {
  for (let left = processesWith(variable); left.length > 0; left = processesWith(variable)) {
    for (const pid of left) signal(pid, "SIGKILL");
    await Promise.all(left.map((pid) => untilGone(pid)));
  }
}

const allProcesses = (): number[] => readdirSync("/proc").map(Number).filter(Number.isInteger);

/** A program that others may only execute is closed to a worker that is not root. */
function hidesFiles(pid: number): boolean {
  try {
    readdirSync(`/proc/${pid}/fd`);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES" && isRunning(pid);
  }
}

const entriesOf = (directory: string): string[] =>
  (attempt(() => readdirSync(directory)) ?? []).map((name) => `${directory}/${name}`);
const environmentOf = (pid: number): string[] => textOf(`/proc/${pid}/environ`).split("\0");
const textOf = (path: string): string => attempt(() => readFileSync(path, "utf8")) ?? "";

/** A process may end at any moment, and its files with it. */
function attempt<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}
