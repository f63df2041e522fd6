import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";

/** Identifies a process uniquely, even if its id is reused or the machine restarts. */
export type ProcessIdentity = { readonly pid: number; readonly startedAt: string; readonly boot: string };

const BOOT_ID = "/proc/sys/kernel/random/boot_id";

/** Returns undefined if there is no such process. */
export function identify(pid: number): ProcessIdentity | undefined {
  const startedAt = startOf(pid);
  return startedAt === undefined ? undefined : { pid, startedAt, boot: bootId() };
}

export function isAlive(process: ProcessIdentity): boolean {
  const now = identify(process.pid);
  return now !== undefined && now.startedAt === process.startedAt && now.boot === process.boot;
}

/**
 * Kills a process of an earlier worker and the group it leads. While a group has members, the id of its ended leader is
 * not reused, so the remaining members are killed too. An id that now belongs to a different process is ignored.
 */
export function killLeftover(leftover: ProcessIdentity): void {
  const now = identify(leftover.pid);
  if (leftover.boot !== bootId() || (now && now.startedAt !== leftover.startedAt)) return;
  for (const target of now ? [-leftover.pid, leftover.pid] : [-leftover.pid]) {
    try {
      process.kill(target, "SIGKILL");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

const bootId = (): string => (existsSync(BOOT_ID) ? readFileSync(BOOT_ID, "utf8").trim() : "");

function startOf(pid: number): string | undefined {
  try {
    if (!existsSync("/proc/self/stat"))
      return execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" }).trim() || undefined;
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // the name in parentheses may contain any character
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined; // no such process
  }
}
