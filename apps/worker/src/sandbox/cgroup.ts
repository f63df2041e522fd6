import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Controller } from "./cgroup-hierarchies.ts";
import type { Limits } from "./limits.ts";
import { signal } from "./processes.ts";

const CPU_PERIOD_US = 100_000;
const REMOVE_TRIES = 200;
const REMOVE_TRIES_NOW = 50;
const REMOVE_PAUSE_MS = 10;

/**
 * Moves the shell into the cgroups and replaces it with the program, so that no part of the program runs outside them.
 */
const ENTER =
  'n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ > "$1/cgroup.procs" || exit 125; shift; n=$((n-1)); done; exec "$@"';

/** The cgroup of one sandbox: one directory in version 2, one per controller in version 1. */
export class Cgroup {
  readonly version: "v1" | "v2";
  readonly #directories: ReadonlyMap<Controller, string>;

  private constructor(version: "v1" | "v2", directories: ReadonlyMap<Controller, string>) {
    this.version = version;
    this.#directories = directories;
  }

  /** Creates a cgroup below `parents`, with its limits. Throws file system errors. */
  static create(version: "v1" | "v2", parents: ReadonlyMap<Controller, string>, name: string, limits: Limits): Cgroup {
    const made = new Cgroup(
      version,
      new Map([...parents].map(([controller, parent]) => [controller, join(parent, name)])),
    );
    for (const directory of made.#all()) mkdirSync(directory, { recursive: true });
    made.#limit(limits);
    return made;
  }

  /** Returns an argument list that starts `argv` inside the cgroup. */
  enter(argv: readonly string[]): string[] {
    const directories = this.#all();
    return ["/bin/sh", "-c", ENTER, "sh", String(directories.length), ...directories, ...argv];
  }

  limits(controller: Controller): boolean {
    return this.#directories.has(controller);
  }

  /** Returns how many processes the kernel killed because the memory limit was reached. */
  oomKills(): number {
    return this.#counter("memory", this.version === "v2" ? "memory.events" : "memory.oom_control", "oom_kill");
  }

  /** Returns how often the kernel refused a new process because of the limit. */
  refusedForks(): number {
    return this.#counter("pids", "pids.events", "max");
  }

  /** Kills all processes in the cgroup and removes it. */
  async end(): Promise<void> {
    for (const directory of this.#all()) await endCgroup(directory);
  }

  #all(): string[] {
    return [...new Set(this.#directories.values())];
  }

  #limit({ memoryBytes, processes, cpus }: Limits): void {
    const set = (controller: Controller, file: string, value: string) => {
      const directory = this.#directories.get(controller);
      if (directory !== undefined) writeFileSync(join(directory, file), value);
    };
    const setIfPresent = (controller: Controller, file: string, value: string) => {
      if (existsSync(join(this.#directories.get(controller) ?? "", file))) set(controller, file, value);
    };
    set("pids", "pids.max", String(processes));
    if (this.version === "v2") {
      set("memory", "memory.max", String(memoryBytes));
      setIfPresent("memory", "memory.swap.max", "0");
      setIfPresent("memory", "memory.oom.group", "1");
      if (cpus > 0) set("cpu", "cpu.max", `${Math.round(cpus * CPU_PERIOD_US)} ${CPU_PERIOD_US}`);
      return;
    }
    set("memory", "memory.limit_in_bytes", String(memoryBytes));
    setIfPresent("memory", "memory.memsw.limit_in_bytes", String(memoryBytes));
    if (cpus > 0) set("cpu", "cpu.cfs_quota_us", String(Math.round(cpus * CPU_PERIOD_US)));
  }

  #counter(controller: Controller, file: string, name: string): number {
    const directory = this.#directories.get(controller);
    if (directory === undefined) return 0;
    try {
      return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(readFileSync(join(directory, file), "utf8"))?.[1] ?? 0);
    } catch {
      return 0; // the cgroup has been removed
    }
  }
}

/**
 * Kills the processes of a cgroup and of its descendants, and removes them all. Cgroups that cannot be removed remain.
 */
export async function endCgroup(directory: string): Promise<void> {
  for (const child of childrenOf(directory)) await endCgroup(join(directory, child));
  for (let tries = 0; tries < REMOVE_TRIES && !isRemoved(directory); tries += 1) await pause(REMOVE_PAUSE_MS);
}

/** Ends a cgroup like `endCgroup`, but synchronously, for the end of the process. */
export function endCgroupNow(directory: string): void {
  for (const child of childrenOf(directory)) endCgroupNow(join(directory, child));
  const waiting = new Int32Array(new SharedArrayBuffer(4));
  for (let tries = 0; tries < REMOVE_TRIES_NOW && !isRemoved(directory); tries += 1)
    Atomics.wait(waiting, 0, 0, REMOVE_PAUSE_MS);
}

/** Kills the cgroup's processes. Returns true if the cgroup was removed or can never be removed. */
function isRemoved(directory: string): boolean {
  killAll(directory);
  try {
    rmdirSync(directory);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "EBUSY";
  }
}

function killAll(directory: string): void {
  try {
    if (existsSync(join(directory, "cgroup.kill"))) writeFileSync(join(directory, "cgroup.kill"), "1");
    for (const pid of readFileSync(join(directory, "cgroup.procs"), "utf8").split("\n").filter(Boolean))
      signal(Number(pid), "SIGKILL");
  } catch {
    // The cgroup no longer exists.
  }
}

function childrenOf(directory: string): string[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}
