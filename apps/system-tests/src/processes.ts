import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";

export type RunningProcess = { readonly pid: number; readonly command: string; readonly environment: string };

/** Running processes whose command line or environment holds the text, without ourselves. */
export const processesWith = (text: string): RunningProcess[] =>
  everyProcess().filter(
    ({ pid, command, environment }) => pid !== process.pid && (command + environment).includes(text),
  );

/** Processes of sandboxes of these runs, on this machine. */
export function processesOfRuns(uids: readonly string[]): RunningProcess[] {
  const known = new Set(uids);
  return everyProcess().filter(({ environment }) => known.has(/MILLWRIGHT_RUN_ID=(\S+)/.exec(environment)?.[1] ?? ""));
}

/** Ends processes at once; those that are gone already are fine. */
export function killAll(pids: readonly number[], signal: NodeJS.Signals = "SIGKILL"): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

function everyProcess(): RunningProcess[] {
  return existsSync("/proc/self/environ") ? fromProc() : fromPs();
}

const fromProc = () =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({
      pid: Number(name),
      command: textOf(`/proc/${name}/cmdline`),
      environment: textOf(`/proc/${name}/environ`),
    }));

/** "" for a process that has ended or is not ours. */
function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8").replaceAll("\0", " ");
  } catch {
    return "";
  }
}

/** Command and environment come in one there. */
const fromPs = () =>
  execFileSync("ps", ["axeww", "-o", "pid=,command="], { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 })
    .split("\n")
    .flatMap((line) => {
      const [, pid, command = ""] = /^\s*(\d+) (.*)$/.exec(line) ?? [];
      return pid === undefined ? [] : [{ pid: Number(pid), command, environment: "" }];
    });
