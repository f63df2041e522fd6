import { randomUUID } from "node:crypto";
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Cgroup, endCgroup, endCgroupNow } from "./cgroup.ts";
import { hierarchiesOf, type Controller } from "./cgroup-hierarchies.ts";
import type { Limits } from "./limits.ts";
import { isRunning, startOf } from "./processes.ts";

const PREFIX = "millwright-";
/** The cgroup (version 2) that a worker moves itself into, because only leaf cgroups may contain processes. */
const LEAF = "millwright-leaf";

/**
 * The cgroups of one worker process, one per sandbox. They are in a directory whose name lets a later worker recognize
 * that its owner is dead.
 */
export class Cgroups {
  readonly version: "v1" | "v2";
  readonly #directories: ReadonlyMap<Controller, string>;

  private constructor(version: "v1" | "v2", directories: ReadonlyMap<Controller, string>) {
    this.version = version;
    this.#directories = directories;
  }

  /**
   * Finds where this process may create cgroups, and removes what dead workers left there. `choice` is "auto", "none"
   * or a version 2 directory that was delegated to the worker. Returns the reason if cgroups are not available.
   */
  static async open(choice: string): Promise<Cgroups | { readonly unavailable: string }> {
    if (choice === "none") return { unavailable: "they are switched off" };
    if (process.platform !== "linux") return { unavailable: "this is not Linux" };
    const { v1, v2 } = hierarchiesOf(
      readFileSync("/proc/self/mountinfo", "utf8"),
      readFileSync("/proc/self/cgroup", "utf8"),
    );
    try {
      if (choice !== "auto") return await Cgroups.#openUnified(choice);
      const unified = v2 !== undefined && controllersIn(v2).includes("memory") ? v2 : undefined;
      if (unified === undefined) return await Cgroups.#openLegacy(v1);
      return await Cgroups.#openUnified(unified).catch((error: unknown) => {
        // systemd has put the unit's own processes into a child cgroup
        if (/\.(service|scope)$/.test(dirname(unified))) return Cgroups.#openUnified(dirname(unified));
        throw error;
      });
    } catch (error) {
      return { unavailable: (error as Error).message };
    }
  }

  get controllers(): readonly Controller[] {
    return [...this.#directories.keys()];
  }

  /** Creates the cgroup of a sandbox. Throws file system errors. */
  create(limits: Limits): Cgroup {
    return Cgroup.create(this.version, this.#directories, `sandbox-${randomUUID().slice(0, 8)}`, limits);
  }

  /**
   * Lets this process manage its cgroups after it has switched to another user. In version 2, this includes the cgroup
   * of the process itself.
   */
  delegateTo({ uid, gid }: { readonly uid: number; readonly gid: number }): void {
    for (const directory of new Set(this.#directories.values())) {
      const leaf = join(directory, LEAF);
      if (this.version === "v2") {
        mkdirSync(leaf, { recursive: true });
        writeFileSync(join(leaf, "cgroup.procs"), String(process.pid));
      }
      for (const delegated of this.version === "v2" ? [directory, leaf] : [directory]) {
        for (const file of [delegated, ...readdirSync(delegated).map((name) => join(delegated, name))])
          chownSync(file, uid, gid);
      }
    }
  }

  /**
   * Kills what remains in any sandbox and removes all cgroups, before the process ends. Whatever takes too long is left
   * to a later worker.
   */
  close(): void {
    for (const directory of new Set(this.#directories.values())) endCgroupNow(directory);
  }

  static async #openUnified(base: string): Promise<Cgroups> {
    await sweep(base);
    const wanted = controllersIn(base).filter(
      (name): name is Controller => name === "memory" || name === "pids" || name === "cpu",
    );
    if (!wanted.includes("memory") || !wanted.includes("pids"))
      throw new Error(`${base} has no controllers for memory and processes`);
    enable(base, wanted);
    const own = join(base, nameOfThis());
    mkdirSync(own, { recursive: true });
    enable(own, wanted);
    return new Cgroups("v2", new Map(wanted.map((controller) => [controller, own])));
  }

  static async #openLegacy(hierarchies: ReadonlyMap<Controller, string>): Promise<Cgroups> {
    const made = new Map<Controller, string>();
    let refused = "none is mounted";
    for (const [controller, base] of hierarchies) {
      try {
        await sweep(base);
        const own = join(base, nameOfThis());
        mkdirSync(own, { recursive: true });
        made.set(controller, own);
      } catch (error) {
        refused = (error as Error).message;
      }
    }
    if (!made.has("memory") && !made.has("pids")) throw new Error(refused);
    return new Cgroups("v1", made);
  }
}

/**
 * Enables controllers for the children of a version 2 cgroup. Throws if the cgroup contains processes other than this
 * one.
 */
function enable(directory: string, controllers: readonly Controller[]): void {
  const file = join(directory, "cgroup.subtree_control");
  const missing = controllers.filter((name) => !words(file).includes(name));
  if (missing.length === 0) return;
  const write = () => writeFileSync(file, missing.map((name) => `+${name}`).join(" "));
  try {
    write();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EBUSY") throw error;
    const others = words(join(directory, "cgroup.procs")).filter((pid) => Number(pid) !== process.pid);
    if (others.length > 0) throw new Error(`${directory} contains processes other than the worker`, { cause: error });
    mkdirSync(join(directory, LEAF), { recursive: true });
    writeFileSync(join(directory, LEAF, "cgroup.procs"), String(process.pid));
    write();
  }
}

const controllersIn = (directory: string): string[] => words(join(directory, "cgroup.controllers"));

function words(file: string): string[] {
  return existsSync(file) ? readFileSync(file, "utf8").split(/\s+/).filter(Boolean) : [];
}

/**
 * Returns the name of this process's directory. It contains the pid namespace, because process ids are unique only
 * within one, and another container may share the parent directory.
 */
const nameOfThis = (): string => `${PREFIX}${namespace()}-${process.pid}-${startOf(process.pid)}`;
const namespace = (): string => /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? "0";

/** Kills the processes of dead workers in this pid namespace. */
async function sweep(base: string): Promise<void> {
  const ours = new RegExp(`^${PREFIX}${namespace()}-(\\d+)-(\\d+)$`);
  for (const name of readdirSync(base)) {
    const [, pid, start] = ours.exec(name) ?? [];
    if (pid === undefined || (isRunning(Number(pid)) && startOf(Number(pid)) === start)) continue;
    await endCgroup(join(base, name));
  }
}
