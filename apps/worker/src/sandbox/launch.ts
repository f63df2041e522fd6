import { spawn, type ChildProcess } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, extname, join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { bubblewrapArguments, find, findBubblewrap, findPrlimit, GROUP, INSIDE_INIT, INSIDE_NODE, PASSWD } from "./bubblewrap.ts";
import { startOf } from "./processes.ts";
import type { SandboxSpec } from "./spec.ts";

/** Present in the environment of everything started in a sandbox of kind `none`, so that it can be found and ended. */
export const TAG = "MILLWRIGHT_SANDBOX";

const PROCESSES_MAX = 4_096;
const FILE_BYTES_MAX = 4 * 1024 ** 3;
const STDERR_CHARACTERS_MAX = 4_096;
/** .ts from source, .js when built. */
export const PROGRAM_EXTENSION = extname(fileURLToPath(import.meta.url));
const MAIN = `main${PROGRAM_EXTENSION}`;
export const INIT_DIRECTORY = fileURLToPath(new URL("./init", import.meta.url));

export type Launched = {
  readonly child: ChildProcess;
  readonly input: Writable;
  readonly output: Readable;
  /** The first process inside (bwrap) as the host sees it, once known: when it is gone, everything inside is. */
  inside(): { pid: number; start: string | undefined } | undefined;
  /** The end of what was written to standard error: why a start failed. */
  complaint(): string;
};

/** Starts bubblewrap with `sandbox-init` in it. Errors: throws where bubblewrap is not installed. */
export async function launchBubblewrap(spec: SandboxSpec, disableUserns: boolean): Promise<Launched> {
  const program = findBubblewrap();
  if (!program) throw new Error("bubblewrap is not installed.");
  const etc = join(spec.dir, "etc");
  await mkdir(etc, { recursive: true, mode: 0o700 });
  await Promise.all([writeFile(join(etc, "passwd"), PASSWD), writeFile(join(etc, "group"), GROUP)]);
  const command = [...limits(true), INSIDE_NODE, "--no-warnings", `${INSIDE_INIT}/${MAIN}`];
  const own = { node: process.execPath, init: INIT_DIRECTORY, etc, disableUserns, infoFd: 3 };
  const child = spawn(program, bubblewrapArguments(spec, own, command), { cwd: "/", env: {}, stdio: ["pipe", "pipe", "pipe", "pipe"] });
  return launched(child, true);
}

/** Starts `sandbox-init` as a plain child process and group: order, limits and cleaning up, but no border. */
export async function launchPlain(spec: SandboxSpec, tag: string): Promise<Launched> {
  const [limiter, ...limited] = limits(false);
  const init = ["--no-warnings", join(INIT_DIRECTORY, MAIN)];
  const [program, args] = limiter ? [limiter, [...limited, process.execPath, ...init]] : [process.execPath, init];
  const child = spawn(program, args, { cwd: spec.dir, env: { [TAG]: tag }, detached: true, stdio: ["pipe", "pipe", "pipe"] });
  return launched(child);
}

/** PATH of commands in a sandbox of kind `none`. */
export const plainPath = (): string =>
  ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", ...(find("/opt/homebrew/bin") ? ["/opt/homebrew/bin"] : []), dirname(process.execPath)].join(":");

/** Errors: throws when the system has no descriptors left for its pipes. */
function launched(child: ChildProcess, tellsInside = false): Launched {
  child.on("error", () => undefined); // whoever waits for the sandbox is told; without a listener it would end the whole worker
  if (!child.stdin || !child.stdout) throw new Error("The sandbox cannot be started: the worker has too many files open.");
  const info = tellsInside ? (child.stdio[3] as Readable) : undefined;
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
  return { child, input: child.stdin, output: child.stdout, inside: () => inside, complaint: () => complaint.trim() };
}

/**
 * Limits of a process, where the system has `prlimit`. The number of processes is set inside only: it counts in the sandbox's own user
 * namespace there, and would count everything of this user outside. (The kernel does not hold root to it.)
 */
function limits(isInside: boolean): string[] {
  const prlimit = findPrlimit();
  if (!prlimit) return [];
  return [prlimit, ...(isInside ? [`--nproc=${PROCESSES_MAX}`] : []), `--fsize=${FILE_BYTES_MAX}`, "--core=0", "--"];
}
