import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { Platform } from "./platform.ts";
import { childrenOf } from "./process-stat.ts";
import type { MemoryUse } from "./results.ts";

/** The platform releases the memory of its start about ten seconds after it. */
const SETTLE_MS = 15_000;

/**
 * Returns the memory of each process of an idle platform and its worker after a start, without PostgreSQL and NATS:
 * resident, and the process's own share of it, in which pages that processes share count once. Linux only.
 */
export async function measureMemory(platform: Platform): Promise<MemoryUse[]> {
  await pause(SETTLE_MS);
  const own = platform.processes();
  const below = own.flatMap(({ pid }) => childrenOf(pid)).map((pid) => ({ name: nameOf(pid), pid }));
  return [...own, ...below.filter(({ name }) => name !== "postgres")].map(({ name, pid }) => ({
    on: platform.setup,
    name,
    residentMb: megabytes(pid, "Rss"),
    ownMb: megabytes(pid, "Pss"),
  }));
}

type ProcessFile = "status" | "smaps_rollup";

const field = (pid: number, file: ProcessFile, name: string): string =>
  new RegExp(`^${name}:\\s+(.*)$`, "m").exec(readFileSync(`/proc/${pid}/${file}`, "utf8"))?.[1] ?? "";
const kilobytes = (pid: number, name: "Pss" | "Rss"): number => Number.parseInt(field(pid, "smaps_rollup", name), 10);
const megabytes = (pid: number, name: "Pss" | "Rss"): number => Math.round(kilobytes(pid, name) / 1024);

/** Returns the resident memory of a process. Linux only. */
export const residentKb = (pid: number): number => kilobytes(pid, "Rss");

function nameOf(pid: number): string {
  const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
  return command.includes("postgres")
    ? "postgres"
    : command.includes("worker")
      ? "worker"
      : field(pid, "status", "Name");
}
