import { spawn, type ChildProcess } from "node:child_process";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import {
  bubblewrapArguments,
  find,
  findBubblewrap,
  findPrlimit,
  GROUP,
  INSIDE_INIT,
  INSIDE_NODE,
  PASSWD,
} from "./bubblewrap.ts";
import type { Cgroup } from "./cgroup.ts";
import { asUser } from "./outside-user.ts";
import { endProcessesWith, signal, startOf, untilGone } from "./processes.ts";
import type { SandboxSpec } from "./spec.ts";

/** Present in the environment of bubblewrap's processes, and of everything in a sandbox of kind `none`: a later worker finds and ends them by it. */
export const TAG = "MILLWRIGHT_SANDBOX";

const STDERR_CHARACTERS_MAX = 4_096;
/** What a Node process reserves without using it. */
const RESERVED_BYTES = 2 * 1024 ** 3;
/** Descriptors of bubblewrap beside the standard ones. */
const INFO_FD = 3;
const ARGS_FD = 4;
/** For the programs that prepare a sandbox; none of it is seen inside. */
const PREPARING = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" };
/** .ts from source, .js when built. */
export const PROGRAM_EXTENSION = extname(fileURLToPath(import.meta.url));
const MAIN = `main${PROGRAM_EXTENSION}`;
export const INIT_DIRECTORY = fileURLToPath(new URL("./init", import.meta.url));

export type Launched = {
  readonly child: ChildProcess;
  readonly input: Writable;
  readonly output: Readable;
  /** The first process inside (bwrap) as the host sees it, once known: when it is gone, everything inside is. */
  readonly inside: () => { pid: number; start: string | undefined } | undefined;
  /** Resolves when `inside` returns all it ever will. */
  readonly informed: Promise<void>;
  /** The end of what was written to standard error: why a start failed. */
  readonly complaint: () => string;
};

/** What runs in a sandbox: `sandbox-init`, which receives its environment as its first message, or a script with this environment. */
export type Entry = { readonly script: string; readonly env: Readonly<Record<string, string>> } | "init";

/**
 * Starts bubblewrap with `entry` in it. Its arguments go through a pipe, so that nothing inside can read the host's paths in them.
 * Errors: throws where bubblewrap is not installed.
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
    env: { ...PREPARING, [TAG]: tag },
    stdio: ["pipe", "pipe", "pipe", "pipe", "pipe"],
  });
  const pipe = child.stdio[ARGS_FD] as Writable | null;
  pipe?.on("error", () => undefined); // its end tells
  pipe?.end(args.map((argument) => `${argument}\0`).join(""));
  return launched(child, true);
}

/** Starts `entry` as a plain child process and group: order, limits and cleaning up, but no border. */
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
  return launched(child);
}

const shell = (script: string): string[] => ["/bin/sh", "-c", script];

/** Kills a launched process with everything in its sandbox (bwrap) or its group (none). */
export function killLaunched({ child, inside }: Launched, kind: SandboxSpec["host"]["kind"]): void {
  const first = inside();
  if (first && startOf(first.pid) === first.start) signal(first.pid, "SIGKILL");
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  signal(kind === "bwrap" ? child.pid : -child.pid, "SIGKILL");
}

/**
 * Resolves with how a launched process ended, when no process of its sandbox is left: the kernel reports the first process of a process namespace as ended
 * after every other one in it.
 */
export async function untilEnded({ child, inside, informed }: Launched, mark: string | undefined): Promise<string> {
  const ending = await new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signalName) => resolve(signalName ?? `exit code ${code}`));
  });
  await informed;
  const first = inside();
  if (first && startOf(first.pid) === first.start) signal(first.pid, "SIGKILL"); // bubblewrap ends with its program, not with what that left running
  if (first) await untilGone(first.pid, first.start);
  if (mark !== undefined) await endProcessesWith(mark);
  return ending;
}

/** PATH of commands in a sandbox of kind `none`. */
export const plainPath = (): string =>
  [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    ...(find("/opt/homebrew/bin") ? ["/opt/homebrew/bin"] : []),
    dirname(process.execPath),
  ].join(":");

/** Files and directories that are made for each sandbox. */
async function prepare({ dir, uid }: SandboxSpec): Promise<{ node: string; init: string; etc: string; tmp: string }> {
  const [etc, tmp] = [join(dir, "etc"), join(dir, "tmp")];
  for (const directory of [etc, join(tmp, "tmp"), join(tmp, "shm"), join(dir, "stage")])
    await mkdir(directory, { recursive: true, mode: 0o755 });
  await Promise.all([writeFile(join(etc, "passwd"), PASSWD), writeFile(join(etc, "group"), GROUP)]);
  if (uid !== undefined) for (const directory of [join(tmp, "tmp"), join(tmp, "shm")]) await chmod(directory, 0o1777);
  return { node: process.execPath, init: INIT_DIRECTORY, etc, tmp };
}

/** The same sandbox for another user outside, with the sources where that user can reach them. */
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
    ...(spec.rootfs === undefined ? {} : { rootfs: seenAt(spec.rootfs) }),
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

/** Errors: throws when the system has no descriptors left for its pipes. */
function launched(child: ChildProcess, reportsInside = false): Launched {
  child.on("error", () => undefined); // whoever waits for the sandbox is told; without a listener it would end the whole worker
  if (!child.stdin || !child.stdout)
    throw new Error("The sandbox cannot be started: the worker has too many files open.");
  const info = reportsInside ? (child.stdio[INFO_FD] as Readable) : undefined;
  const informed = info ? new Promise<void>((resolve) => info.once("close", resolve)) : Promise.resolve();
  let inside: { pid: number; start: string | undefined } | undefined;
  let complaint = "";
  let told = "";
  info?.on("data", (chunk: Buffer) => {
    told += chunk.toString("utf8");
    const found = /"child-pid":\s*(\d+)/.exec(told)?.[1];
    if (found) inside ??= { pid: Number(found), start: startOf(Number(found)) };
  });
  info?.on("error", () => undefined);
  child.stderr?.on("data", (chunk: Buffer) => {
    complaint = (complaint + chunk.toString("utf8")).slice(-STDERR_CHARACTERS_MAX);
  });
  return {
    child,
    input: child.stdin,
    output: child.stdout,
    inside: () => inside,
    informed,
    complaint: () => complaint.trim(),
  };
}

/**
 * Limits of each process, where the system has `prlimit`. The number of processes is set inside only: it counts in the sandbox's own user
 * namespace there, and would count everything of this user outside. Data is limited, not address space, and generously: Node reserves far more
 * than it uses, and what is used is watched.
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
