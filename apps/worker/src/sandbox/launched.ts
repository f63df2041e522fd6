import type { ChildProcess } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { endProcessesWith, signal, startOf, untilGone } from "./processes.ts";
import type { SandboxSpec } from "./spec.ts";

/** The descriptor on which bubblewrap reports the first process inside, in addition to the standard ones. */
export const INFO_FD = 3;
const STDERR_CHARACTERS_MAX = 4_096;

/** The process of a sandbox on the host: bubblewrap, or `sandbox-init` itself without isolation. */
export type Launched = {
  readonly child: ChildProcess;
  readonly input: Writable;
  readonly output: Readable;
  /**
   * Returns the first process inside the sandbox (bwrap) with its host process id, once known. When it has ended, every
   * process inside has ended.
   */
  readonly inside: () => { pid: number; start: string | undefined } | undefined;
  /** Resolves when `inside` no longer changes. */
  readonly informed: Promise<void>;
  /** Returns the end of standard error, which explains a failed start. */
  readonly errorOutput: () => string;
};

/**
 * Returns a launched process whose output is observed. `reportsInside`: bubblewrap reports its first process on
 * `INFO_FD`. Throws if the system had no descriptors for the pipes of the process.
 */
export function watchLaunched(child: ChildProcess, reportsInside = false): Launched {
  // code that awaits the sandbox handles the error; without a listener it would end the whole worker
  child.on("error", () => undefined);
  if (!child.stdin || !child.stdout)
    throw new Error("The sandbox cannot be started: the worker has too many files open.");
  const info = reportsInside ? (child.stdio[INFO_FD] as Readable) : undefined;
  const informed = info ? new Promise<void>((resolve) => info.once("close", resolve)) : Promise.resolve();
  let inside: { pid: number; start: string | undefined } | undefined;
  let errorOutput = "";
  let infoText = "";
  info?.on("data", (chunk: Buffer) => {
    infoText += chunk.toString("utf8");
    const found = /"child-pid":\s*(\d+)/.exec(infoText)?.[1];
    if (found) inside ??= { pid: Number(found), start: startOf(Number(found)) };
  });
  info?.on("error", () => undefined);
  child.stderr?.on("data", (chunk: Buffer) => {
    errorOutput = (errorOutput + chunk.toString("utf8")).slice(-STDERR_CHARACTERS_MAX);
  });
  return {
    child,
    input: child.stdin,
    output: child.stdout,
    inside: () => inside,
    informed,
    errorOutput: () => errorOutput.trim(),
  };
}

/** Kills a launched process with everything in its sandbox (bwrap) or its process group (none). */
export function killLaunched({ child, inside }: Launched, kind: SandboxSpec["host"]["kind"]): void {
  const first = inside();
  if (first && startOf(first.pid) === first.start) signal(first.pid, "SIGKILL");
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  signal(kind === "bwrap" ? child.pid : -child.pid, "SIGKILL");
}

/**
 * Resolves with how a launched process ended, when no process of its sandbox remains. The kernel reports the first
 * process of a pid namespace as ended after every other process in it.
 */
export async function untilEnded({ child, inside, informed }: Launched, mark: string | undefined): Promise<string> {
  const ending = await new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signalName) => resolve(signalName ?? `exit code ${code}`));
  });
  await informed;
  const first = inside();
  // bubblewrap exits with its program, even if background processes of the program remain
  if (first && startOf(first.pid) === first.start) signal(first.pid, "SIGKILL");
  if (first) await untilGone(first.pid, first.start);
  if (mark !== undefined) await endProcessesWith(mark);
  return ending;
}
