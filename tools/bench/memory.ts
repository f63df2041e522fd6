import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { startPlatform } from "./platform.ts";
import type { MemoryUse } from "./results.ts";

const SETTLE_MS = 6_000;

/** What an idle platform with its one worker holds after a start, process by process, without PostgreSQL. Linux only. */
export async function measureMemory(dir: string): Promise<MemoryUse[]> {
  const home = join(dir, "idle");
  mkdirSync(home);
  const platform = await startPlatform(home, { workers: 1 });
  try {
    await pause(SETTLE_MS);
    return [
      { name: "platform", residentMb: residentMb(platform.pid) },
      ...childrenOf(platform.pid).map((pid) => ({ name: nameOf(pid), residentMb: residentMb(pid) })).filter(({ name }) => name !== "postgres"),
    ];
  } finally {
    await platform.stop();
  }
}

const statusOf = (pid: number): string => readFileSync(`/proc/${pid}/status`, "utf8");
const field = (pid: number, name: string): string => new RegExp(`^${name}:\\s+(.*)$`, "m").exec(statusOf(pid))?.[1] ?? "";
const residentMb = (pid: number): number => Math.round(Number.parseInt(field(pid, "VmRSS"), 10) / 1024);

function nameOf(pid: number): string {
  const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
  return command.includes("worker") ? "worker" : command.includes("postgres") ? "postgres" : field(pid, "Name");
}

/** Of all generations. */
function childrenOf(pid: number): number[] {
  const parents = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(Number).map((one): [number, number] => [one, parentOf(one)]);
  const below = (of: number): number[] => parents.filter(([, parent]) => parent === of).flatMap(([one]) => [one, ...below(one)]);
  return below(pid);
}

function parentOf(pid: number): number {
  try {
    return Number(field(pid, "PPid"));
  } catch {
    return -1; // it has just ended
  }
}
