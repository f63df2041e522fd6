import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { bestEffort } from "@millwright/errors";
import type { Logger } from "@millwright/telemetry";

import { identify, isAlive, killLeftover, type ProcessIdentity } from "./process-identity.ts";
import { endProcessesWith } from "../sandbox/processes.ts";
import { removeTree } from "../sandbox/remove-tree.ts";

/** The minimum free disk space and number of free inodes for another execution. */
const FREE_BYTES_MIN = 256 * 1024 * 1024;
const FREE_INODES_MIN = 20_000;
const PREFIX = "instance-";

/** Stores processes on disk, for the next worker if this one is killed. */
export type ProcessRecords = { add(pid: number, mark?: string): void; remove(pid: number): void };

type AttemptRef = { readonly executionId: bigint; readonly attempt: number };

/**
 * The on-disk state of one worker process: `<root>/instance-<name>/{owner.json,executions,spool,processes}`. Several
 * processes may share a root. At startup, each removes the directories of dead ones and kills the processes that they
 * left running.
 */
export class InstanceDirectory {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** Sweeps `root` and creates this process's own directory in it. Throws file system errors. */
  static async open(root: string, name: string, log: Logger): Promise<InstanceDirectory> {
    const absolute = resolve(root);
    mkdirSync(absolute, { recursive: true, mode: 0o700 });
    await sweep(absolute, log);
    const path = join(absolute, PREFIX + name);
    const draft = join(absolute, `.new-${name}`);
    for (const part of ["executions", "spool", "processes"])
      mkdirSync(join(draft, part), { recursive: true, mode: 0o700 });
    writeFileSync(join(draft, "owner.json"), JSON.stringify(identify(process.pid)));
    // the directory appears together with its owner file, so that no other process treats it as a leftover
    renameSync(draft, path);
    return new InstanceDirectory(path);
  }

  /** The directory of repository copies. It is shared by all processes with this root and is not removed. */
  get cacheDir(): string {
    return join(dirname(this.path), "repositories");
  }

  /**
   * The directory of workspaces that are retained for the next execution of their run. It is removed with the process's
   * directory.
   */
  get parkedDir(): string {
    return join(this.path, "parked");
  }

  executionDir({ executionId, attempt }: AttemptRef): string {
    return join(this.path, "executions", `${executionId}-${attempt}`);
  }

  spoolFile({ executionId, attempt }: AttemptRef): string {
    return join(this.path, "spool", `${executionId}-${attempt}.jsonl`);
  }

  readonly processes: ProcessRecords = {
    add: (pid, mark) => writeFileSync(this.#processFile(pid), JSON.stringify({ ...identify(pid), mark })),
    remove: (pid) => rmSync(this.#processFile(pid), { force: true }),
  };

  async hasFreeDisk(): Promise<boolean> {
    const { bavail, bsize, files, ffree } = await statfs(this.path);
    const hasInodes = files === 0 || ffree >= FREE_INODES_MIN; // some file systems do not count inodes
    return bavail * bsize >= FREE_BYTES_MIN && hasInodes;
  }

  remove(): Promise<void> {
    return removeTree(this.path);
  }

  #processFile(pid: number): string {
    return join(this.path, "processes", `${pid}.json`);
  }
}

async function sweep(root: string, log: Logger): Promise<void> {
  for (const name of readdirSync(root).filter((entry) => entry.startsWith(PREFIX))) {
    const path = join(root, name);
    const owner = readRecord(join(path, "owner.json"));
    if (owner && isAlive(owner)) continue;
    await bestEffort("sweep a dead worker's directory", log, async () => {
      for (const file of readdirSync(join(path, "processes"))) {
        const leftover = readRecord(join(path, "processes", file));
        if (leftover?.boot !== undefined) killLeftover(leftover);
        // before any of their files are removed
        if (leftover?.mark !== undefined) await endProcessesWith(leftover.mark);
      }
      await removeTree(path);
      log.info({ operation: "sweep", path }, "a dead worker's directory was removed");
    });
  }
}

/** Reads a record; returns undefined if it was never written or is incomplete after a crash. */
function readRecord(file: string): (ProcessIdentity & { readonly mark?: string }) | undefined {
  try {
    return (JSON.parse(readFileSync(file, "utf8")) as ProcessIdentity | null) ?? undefined;
  } catch {
    return undefined;
  }
}
