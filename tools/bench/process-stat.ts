import { readdirSync, readFileSync } from "node:fs";

/** Unit of the times in /proc: 1/100 s on every architecture that Node.js supports. */
const TICK_US = 10_000;

export type NamedProcess = { readonly name: string; readonly pid: number };

export type ProcessStat = {
  readonly parent: number;
  /** Processor time of all threads, in microseconds. */
  readonly cpuUs: number;
  /** Processor time of children that have ended, in microseconds. */
  readonly endedChildrenUs: number;
};

/** Parses /proc/<pid>/stat. The name of the program, in parentheses, can contain spaces and parentheses. */
export function parseStat(text: string): ProcessStat {
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [parent, user, system, childUser, childSystem] = [1, 11, 12, 13, 14].map((n) => Number(fields[n]));
  return {
    parent: parent!,
    cpuUs: (user! + system!) * TICK_US,
    endedChildrenUs: (childUser! + childSystem!) * TICK_US,
  };
}

/** Returns the state of a process; undefined if it has ended. Linux only. */
export function statOf(pid: number): ProcessStat | undefined {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return undefined;
  }
}

/** Returns the ids of all descendants of a process. */
export function childrenOf(root: number): number[] {
  const parents = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .map((pid): [number, number | undefined] => [pid, statOf(pid)?.parent]);
  const below = (of: number): number[] =>
    parents.filter(([, parent]) => parent === of).flatMap(([pid]) => [pid, ...below(pid)]);
  return below(root);
}

/** Returns the processor time of a process and all its descendants, including those that have ended. */
export const cpuUsOfTree = (root: number): number =>
  [root, ...childrenOf(root)]
    .map((pid) => statOf(pid))
    .reduce((sum, stat) => sum + (stat ? stat.cpuUs + stat.endedChildrenUs : 0), 0);
