import { mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { bestEffort } from "@millwright/errors";
import type { Logger } from "@millwright/telemetry";
import type { WorkingCopy } from "../git/repository.ts";
import { usageOfDirectories } from "../sandbox/disk-usage.ts";
import type { CancelTimer, Timers } from "../time/timers.ts";
import { removeTree } from "../sandbox/remove-tree.ts";

/** A workspace that an execution has saved and left. */
export type ParkedWorkspace = {
  readonly copies: readonly WorkingCopy[];
  /** Its state when it was saved (`workspaceState`). */
  readonly fingerprint: string;
  /** The key of its snapshot; "" if it is as cloned. */
  readonly snapshotKey: string;
};

/** `bytes` is 0 until it has been measured. */
type RetainedWorkspace = ParkedWorkspace & { readonly path: string; bytes: number; readonly cancelTimer: CancelTimer };

/** The maximum number of workspaces, regardless of their size, because most ended runs never continue. */
const COUNT_MAX = 64;

export type ParkedWorkspacesDeps = {
  /** A directory on the same file system as the executions' directories, because workspaces are moved, not copied. */
  readonly dir: string;
  /** The maximum size of all workspaces together. The oldest are removed first. */
  readonly bytesMax: number;
  readonly timers: Timers;
  readonly log: Logger;
};

/**
 * Retains workspaces of ended executions for the next execution of their run. That execution then neither clones nor
 * restores, and also has the files that git ignores. Each retained workspace is only a copy of a saved one: after any
 * failure, the next execution starts with the saved one. All are removed with the process.
 */
export class ParkedWorkspaces {
  readonly #deps: ParkedWorkspacesDeps;
  /** By run, oldest first. */
  readonly #retained = new Map<string, RetainedWorkspace>();
  #moved = 0;

  constructor(deps: ParkedWorkspacesDeps) {
    this.#deps = deps;
  }

  /**
   * Retains an unused workspace for `forMs`. Returns whether it was retained. Its size is measured afterwards without
   * blocking the caller, and it may then be removed. Never rejects.
   */
  async put(runUid: string, workspace: string, parked: ParkedWorkspace, forMs: number): Promise<boolean> {
    await this.drop(runUid);
    const { dir, bytesMax, timers, log } = this.#deps;
    if (forMs <= 0 || bytesMax === 0) return false;
    let retained: RetainedWorkspace | undefined;
    await bestEffort("park a workspace", log, async () => {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      const path = join(dir, `${runUid}-${(this.#moved += 1)}`);
      await rename(workspace, path);
      retained = { ...parked, path, bytes: 0, cancelTimer: timers.after(forMs, () => void this.drop(runUid)) };
      this.#retained.set(runUid, retained);
    });
    if (retained) void this.#measure(retained);
    return retained !== undefined;
  }

  /** Moves the workspace of a run to `target` if it was saved under this key; otherwise deletes it. Never rejects. */
  async take(runUid: string, snapshotKey: string, target: string): Promise<ParkedWorkspace | undefined> {
    const retained = this.#forget(runUid);
    if (!retained) return undefined;
    let taken: ParkedWorkspace | undefined;
    await bestEffort("take a parked workspace", this.#deps.log, async () => {
      if (retained.snapshotKey !== snapshotKey) return;
      await rename(retained.path, target);
      taken = retained;
    });
    if (!taken) await this.#remove(retained);
    return taken;
  }

  async drop(runUid: string): Promise<void> {
    const retained = this.#forget(runUid);
    if (retained) await this.#remove(retained);
  }

  /** Removes all workspaces to free disk space. */
  async clear(): Promise<void> {
    await Promise.all([...this.#retained.keys()].map((runUid) => this.drop(runUid)));
  }

  async #remove({ path }: RetainedWorkspace): Promise<void> {
    await bestEffort("remove a parked workspace", this.#deps.log, () => removeTree(path));
  }

  #forget(runUid: string): RetainedWorkspace | undefined {
    const retained = this.#retained.get(runUid);
    retained?.cancelTimer();
    this.#retained.delete(runUid);
    return retained;
  }

  async #measure(retained: RetainedWorkspace): Promise<void> {
    retained.bytes = (await usageOfDirectories([retained.path])).bytes; // 0 if it has already been removed
    const { bytesMax } = this.#deps;
    // a workspace over the limit is removed first, so that the others can stay
    for (const [runUid, { bytes }] of this.#retained) if (bytes > bytesMax) await this.drop(runUid);
    let sum = [...this.#retained.values()].reduce((total, { bytes }) => total + bytes, 0);
    for (const [runUid, { bytes }] of this.#retained) {
      if (sum <= bytesMax && this.#retained.size <= COUNT_MAX) return;
      sum -= bytes;
      await this.drop(runUid);
    }
  }
}
