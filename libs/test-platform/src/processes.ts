import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";

export type RunningProcess = { readonly pid: number; readonly command: string; readonly environment: string };

/** Returns the running processes, without this one, whose command line or environment contains the text. */
export const processesWith = (text: string): RunningProcess[] =>
  everyProcess().filter(
    ({ pid, command, environment }) => pid !== process.pid && (command + environment).includes(text),
  );

/** Returns the processes on this machine that belong to sandboxes of these runs. */
export function processesOfRuns(uids: readonly string[]): RunningProcess[] {
  const known = new Set(uids);
  return everyProcess().filter(({ environment }) => known.has(/MILLWRIGHT_RUN_ID=(\S+)/.exec(environment)?.[1] ?? ""));
}

/** Sends a signal to processes; ignores processes that have exited already. */
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

/** Returns "" if the process has ended or belongs to another user. */
function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8").replaceAll("\0", " ");
  } catch {
    return "";
  }
}

/** Lists processes with `ps`, which prints command and environment as one text. */
const fromPs = () =>
  execFileSync("ps", ["axeww", "-o", "pid=,command="], { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 })
    .split("\n")
    .flatMap((line) => {
      const [, pid, command = ""] = /^\s*(\d+) (.*)$/.exec(line) ?? [];
      return pid === undefined ? [] : [{ pid: Number(pid), command, environment: "" }];
    });
