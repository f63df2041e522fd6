import { spawn, type ChildProcess } from "node:child_process";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import type { Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import {
  bubblewrapArguments,
  findBubblewrap,
  findPrlimit,
  GROUP,
  INSIDE_INIT,
  INSIDE_NODE,
  PASSWD,
} from "./bubblewrap.ts";
import type { Cgroup } from "./cgroup.ts";
import { INFO_FD, watchLaunched, type Launched } from "./launched.ts";
import { asUser } from "./outside-user.ts";
import type { SandboxSpec } from "./spec.ts";

/**
 * An environment variable of bubblewrap's processes, and of all processes in a sandbox of kind `none`. A later worker
 * uses it to find and end them.
 */
export const TAG = "MILLWRIGHT_SANDBOX";

/** The memory that a Node.js process reserves without using it. */
const RESERVED_BYTES = 2 * 1024 ** 3;
/** The descriptor of bubblewrap's arguments, in addition to the standard ones and `INFO_FD`. */
const ARGS_FD = 4;
/** The environment of the programs that prepare a sandbox. It is not visible inside. */
const PREPARATION_ENV = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" };
/** `.ts` when run from source, `.js` when built. */
export const PROGRAM_EXTENSION = extname(fileURLToPath(import.meta.url));
const MAIN = `main${PROGRAM_EXTENSION}`;
export const INIT_DIRECTORY = fileURLToPath(new URL("./init", import.meta.url));

/**
 * What runs in a sandbox: `sandbox-init`, which receives its environment in its first message, or a script with this
 * environment.
 */
export type Entry = { readonly script: string; readonly env: Readonly<Record<string, string>> } | "init";

/**
 * Starts bubblewrap with `entry` in it. The arguments are passed through a pipe, so that processes inside cannot read
 * the host's paths. Throws if bubblewrap is not installed.
 */
export async function launchBubblewrap(
  spec: SandboxSpec,
  cgroup: Cgroup | undefined,
  tag: string,
  disableUserns: boolean,
  entry: Entry = "init",
): Promise<Launched> {
  const program = findBubblewrap();
  if (!program) throw new Error("bubblewrap is not installed.");
  const own = { ...(await prepare(spec)), disableUserns };
  const command = entry === "init" ? [INSIDE_NODE, "--no-warnings", `${INSIDE_INIT}/${MAIN}`] : shell(entry.script);
  const bubblewrap = [
    program,
    "--info-fd",
    String(INFO_FD),
    "--args",
    String(ARGS_FD),
    "--",
    ...limiter(spec, true),
    ...command,
  ];
  const { argv, args: mounts } =
    spec.uid === undefined
      ? { argv: bubblewrap, args: bubblewrapArguments(spec, own) }
      : staged(spec, spec.uid, own, bubblewrap);
  const args = [
    ...mounts,
    ...(entry === "init" ? [] : Object.entries(entry.env).flatMap(([name, value]) => ["--setenv", name, value])),
  ];
  const child = start(cgroup ? cgroup.enter(argv) : argv, {
    cwd: "/",
    env: { ...PREPARATION_ENV, [TAG]: tag },
    stdio: ["pipe", "pipe", "pipe", "pipe", "pipe"],
  });
  const pipe = child.stdio[ARGS_FD] as Writable | null;
  pipe?.on("error", () => undefined); // the end of the process reports the fault
  pipe?.end(args.map((argument) => `${argument}\0`).join(""));
  return watchLaunched(child, true);
}

/**
 * Starts `entry` as an ordinary child process in its own process group: with limits and cleanup, but without isolation.
 */
export async function launchPlain(
  spec: SandboxSpec,
  cgroup: Cgroup | undefined,
  tag: string,
  entry: Entry = "init",
): Promise<Launched> {
  const command =
    entry === "init" ? [process.execPath, "--no-warnings", join(INIT_DIRECTORY, MAIN)] : shell(entry.script);
  const argv = [...limiter(spec, false), ...command];
  const env = { ...(entry === "init" ? {} : entry.env), [TAG]: tag };
  const child = start(cgroup ? cgroup.enter(argv) : argv, {
    cwd: spec.dir,
    env,
    detached: true,
    stdio: ["pipe", "pipe", "pipe"],
  });
  return watchLaunched(child);
}

const shell = (script: string): string[] => ["/bin/sh", "-c", script];

/** Creates the files and directories of each sandbox. */
async function prepare({ dir, uid }: SandboxSpec): Promise<{ node: string; init: string; etc: string; tmp: string }> {
  const [etc, tmp] = [join(dir, "etc"), join(dir, "tmp")];
  for (const directory of [etc, join(tmp, "tmp"), join(tmp, "shm"), join(dir, "stage")])
    await mkdir(directory, { recursive: true, mode: 0o755 });
  await Promise.all([writeFile(join(etc, "passwd"), PASSWD), writeFile(join(etc, "group"), GROUP)]);
  if (uid !== undefined) for (const directory of [join(tmp, "tmp"), join(tmp, "shm")]) await chmod(directory, 0o1777);
  return { node: process.execPath, init: INIT_DIRECTORY, etc, tmp };
}

/**
 * Returns the arguments of the same sandbox for a different host user, with the sources at paths that the user can
 * access.
 */
function staged(
  spec: SandboxSpec,
  uid: number,
  own: Parameters<typeof bubblewrapArguments>[1],
  bubblewrap: string[],
): { argv: string[]; args: string[] } {
  const directories: string[] = [];
  const seenAt = (directory: string): string => `/tmp/${directories.push(directory) - 1}`;
  const reachable = {
    ...own,
    node: `${seenAt(dirname(own.node))}/${basename(own.node)}`,
    init: seenAt(own.init),
    etc: seenAt(own.etc),
    tmp: seenAt(own.tmp),
    rootfs: spec.rootfs === undefined ? undefined : seenAt(spec.rootfs),
  };
  const mounts = spec.mounts.map((mount) => ({ ...mount, source: seenAt(mount.source) }));
  const relays = (spec.relays ?? []).map(({ port, socket }) => ({
    port,
    socket: join(seenAt(dirname(socket)), basename(socket)),
  }));
  const args = bubblewrapArguments({ ...spec, mounts, relays }, reachable);
  return { argv: asUser(uid, join(spec.dir, "stage"), directories, bubblewrap), args };
}

function start([program = "", ...args]: readonly string[], options: Parameters<typeof spawn>[2]): ChildProcess {
  return spawn(program, args, options);
}

/**
 * Returns the limits of each process, if the system has `prlimit`. The process limit is set only inside, where it
 * counts the sandbox's user namespace; outside it would count every process of this user. The limit applies to data,
 * not to address space, and includes a reserve, because Node.js reserves much more than it uses. Actual usage is
 * checked by `Watch`.
 */
function limiter({ limits, host }: SandboxSpec, isInside: boolean): string[] {
  const prlimit = findPrlimit();
  if (!prlimit) return [];
  const data = host.cgroups?.controllers.includes("memory") ? [] : [`--data=${limits.memoryBytes + RESERVED_BYTES}`];
  return [
    prlimit,
    ...(isInside ? [`--nproc=${limits.processes}`] : []),
    ...data,
    `--fsize=${limits.fileBytes}`,
    "--core=0",
    "--",
  ];
}
