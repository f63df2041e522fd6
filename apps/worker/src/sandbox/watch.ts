import type { Cgroup } from "./cgroup.ts";
import { DiskUsage } from "./disk-usage.ts";
import type { Limits } from "./limits.ts";
import { processTreeOf, usageOf } from "./processes.ts";

/** The interval of the checks. A limit that the kernel does not enforce may be exceeded for about this long. */
export const WATCH_MS = 500;

/** A limit that a sandbox has exceeded and that ends it. */
export type Breach = {
  readonly reason: "container_oom" | "process_limit" | "disk_limit";
  readonly resource: "memory" | "processes" | "disk" | "files";
  readonly limit: number;
  /** What detected it: the kernel's cgroups, or a check of the processes and files. */
  readonly by: "cgroup" | "watch";
  /** A message for users. */
  readonly message: string;
};

export type WatchOptions = {
  readonly limits: Limits;
  readonly cgroup: Cgroup | undefined;
  /** The sandbox's writable directories on the host. */
  readonly directories: readonly string[];
  /** Returns the host process id of the sandbox's first process. */
  readonly root: () => number | undefined;
  readonly onBreach: (breach: Breach) => void;
};

/** Checks the limits of one sandbox while it runs, and reports the first that is exceeded. */
export class Watch {
  readonly #options: WatchOptions;
  readonly #disk: DiskUsage;
  #timer: NodeJS.Timeout | undefined;
  #breach: Breach | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
    const { diskBytes, files } = options.limits;
    this.#disk = new DiskUsage(options.directories, { bytes: diskBytes, files }, () => this.#processTree());
  }

  start(): void {
    this.#timer = setTimeout(() => void this.#checkAll(), WATCH_MS).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /**
   * Returns the exceeded limit. Reads the kernel's counters again, so that the result includes the most recent command.
   */
  check(): Breach | undefined {
    if (this.#breach) return this.#breach;
    const { cgroup, limits } = this.#options;
    if ((cgroup?.oomKills() ?? 0) > 0) this.#report(memoryBreach(limits, "cgroup"));
    else if ((cgroup?.refusedForks() ?? 0) > 0) this.#report(processBreach(limits, "cgroup"));
    return this.#breach;
  }

  async #checkAll(): Promise<void> {
    if (!this.check()) this.#checkProcesses();
    if (!this.#breach) await this.#checkDisk();
    if (!this.#breach && this.#timer !== undefined) this.start();
  }

  /** Checks the limits that the kernel does not enforce. */
  #checkProcesses(): void {
    const { cgroup, limits } = this.#options;
    const [limitsMemory, limitsProcesses] = [cgroup?.limits("memory") ?? false, cgroup?.limits("pids") ?? false];
    if (limitsMemory && limitsProcesses) return;
    const usage = this.#processTree().map(usageOf);
    const sum = (name: "threads" | "bytes") => usage.reduce((total, measured) => total + measured[name], 0);
    if (!limitsMemory && sum("bytes") > limits.memoryBytes) this.#report(memoryBreach(limits, "watch"));
    else if (!limitsProcesses && sum("threads") >= limits.processes) this.#report(processBreach(limits, "watch"));
  }

  async #checkDisk(): Promise<void> {
    const { limits } = this.#options;
    // its directories have been removed
    const { bytes, files } = await this.#disk.usage().catch(() => ({ bytes: 0, files: 0 }));
    if (bytes > limits.diskBytes) {
      this.#report({
        ...{ reason: "disk_limit", resource: "disk", limit: limits.diskBytes, by: "watch" },
        message: `The run's files use ${inMiB(bytes)}; the limit is ${inMiB(limits.diskBytes)}.`,
      });
    } else if (files > limits.files) {
      this.#report({
        ...{ reason: "disk_limit", resource: "files", limit: limits.files, by: "watch" },
        message: `The run has ${files} files and directories, more than the limit of ${limits.files}.`,
      });
    }
  }

  #processTree(): number[] {
    const root = this.#options.root();
    return root === undefined ? [] : processTreeOf(root);
  }

  #report(breach: Breach): void {
    this.#breach = breach;
    this.stop();
    this.#options.onBreach(breach);
  }
}

export const memoryBreach = ({ memoryBytes: limit }: Limits, by: Breach["by"]): Breach => ({
  ...{ reason: "container_oom", resource: "memory", limit, by },
  message: `The run exceeded its memory limit of ${inMiB(limit)}.`,
});

const processBreach = ({ processes: limit }: Limits, by: Breach["by"]): Breach => ({
  ...{ reason: "process_limit", resource: "processes", limit, by },
  message: `The run exceeded its limit of ${limit} processes and threads.`,
});

const inMiB = (bytes: number): string => `${Math.round(bytes / 1024 ** 2)} MiB`;
