import { readdirSync, readFileSync, statSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

const POLL_MS = 5;

/** Returns whether a process is running. A zombie is not running. */
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

/**
 * Returns the start time of a process, which distinguishes it from a later process with the same id; undefined if
 * unknown.
 */
export const startOf = (pid: number): string | undefined => fieldsOf(pid)?.[19];

/** Resolves when the process has ended or its id belongs to another process. */
export async function untilGone(pid: number, start = startOf(pid)): Promise<void> {
  while (isRunning(pid) && startOf(pid) === start) await pause(POLL_MS);
}

/** Returns the fields of /proc/<pid>/stat from the third one (the state) on. */
function fieldsOf(pid: number): string[] | undefined {
  const stat = textOf(`/proc/${pid}/stat`);
  return stat === "" ? undefined : stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** Sends a signal to a process or, with a negative id, to a group. Returns whether it existed. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}

/** Returns a process and all its descendants. Linux only. */
export function processTreeOf(root: number): number[] {
  if (process.platform !== "linux") return [];
  const children = new Map<number, number[]>();
  for (const pid of allProcesses()) {
    const parent = Number(fieldsOf(pid)?.[1]);
    children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const tree = [root];
  for (const member of tree) tree.push(...(children.get(member) ?? []));
  return tree;
}

/** Returns the number of threads of a process and its anonymous memory; zeros if it has ended. */
export function usageOf(pid: number): { readonly threads: number; readonly bytes: number } {
  const status = textOf(`/proc/${pid}/status`);
  const number = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+)`, "m").exec(status)?.[1] ?? 0);
  return { threads: number("Threads"), bytes: number("RssAnon") * 1024 };
}

/** Returns how many processes the kernel has killed on this machine since it started because memory was used up. */
export const oomKillsOfMachine = (): number => Number(/^oom_kill (\d+)$/m.exec(textOf("/proc/vmstat"))?.[1] ?? 0);

/**
 * Returns the number and size on disk of files that these processes have open but that were deleted from every
 * directory. `isComplete` is false if the files of a process cannot be read.
 */
export function deletedFiles(pids: readonly number[]): {
  readonly bytes: number;
  readonly files: number;
  readonly isComplete: boolean;
} {
  const found = new Map<string, number>();
  for (const path of pids.flatMap((pid) => entriesOf(`/proc/${pid}/fd`))) {
    const file = attempt(() => statSync(path));
    if (file?.isFile() && file.nlink === 0) found.set(`${file.dev}:${file.ino}`, file.blocks * 512);
  }
  return {
    bytes: [...found.values()].reduce((sum, bytes) => sum + bytes, 0),
    files: found.size,
    isComplete: !pids.some(hidesFiles),
  };
}

/**
 * Returns the processes that have this variable in their environment, including those that changed their session
 * (`setsid`). It finds what a sandbox of kind `none` left. Linux only; otherwise returns nothing.
 */
export function processesWith(variable: string): number[] {
  if (process.platform !== "linux") return [];
  return allProcesses().filter((pid) => pid !== process.pid && environmentOf(pid).includes(variable) && isRunning(pid));
}

/** Kills every process that has this variable, repeatedly until none remains. Linux only. */
export async function endProcessesWith(variable: string): Promise<void> {
  for (let left = processesWith(variable); left.length > 0; left = processesWith(variable)) {
    for (const pid of left) signal(pid, "SIGKILL");
    await Promise.all(left.map((pid) => untilGone(pid)));
  }
}

const allProcesses = (): number[] => readdirSync("/proc").map(Number).filter(Number.isInteger);

/**
 * Returns whether a process's files cannot be listed. The kernel hides them from a worker that is not root if the
 * program is executable but not readable.
 */
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

/** Returns undefined on error, because a process and its files may disappear at any moment. */
function attempt<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}
