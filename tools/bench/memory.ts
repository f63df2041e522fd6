import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { Platform } from "./platform.ts";
import { childrenOf } from "./process-stat.ts";
import type { MemoryUse } from "./results.ts";

/** The platform releases the memory of its start about ten seconds after it. */
const SETTLE_MS = 15_000;

/**
 * Returns the resident memory of each process of an idle platform and its worker after a start, without PostgreSQL and
 * NATS. Linux only.
 */
export async function measureMemory(platform: Platform): Promise<MemoryUse[]> {
  await pause(SETTLE_MS);
  const own = platform.processes();
  const below = own.flatMap(({ pid }) => childrenOf(pid)).map((pid) => ({ name: nameOf(pid), pid }));
  return [...own, ...below.filter(({ name }) => name !== "postgres")].map(({ name, pid }) => ({
    on: platform.setup,
    name,
    residentMb: residentMb(pid),
  }));
}

const statusOf = (pid: number): string => readFileSync(`/proc/${pid}/status`, "utf8");
const field = (pid: number, name: string): string =>
  new RegExp(`^${name}:\\s+(.*)$`, "m").exec(statusOf(pid))?.[1] ?? "";
const residentMb = (pid: number): number => Math.round(Number.parseInt(field(pid, "VmRSS"), 10) / 1024);

function nameOf(pid: number): string {
  const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
  return command.includes("postgres") ? "postgres" : command.includes("worker") ? "worker" : field(pid, "Name");
}
