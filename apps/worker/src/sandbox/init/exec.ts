import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { HeadTail } from "./head-tail.ts";
import { StreamMasker } from "./mask.ts";
import {
  Fault,
  KILL_AFTER_MS,
  OUTPUT_BYTES_MAX,
  type ExecRequest,
  type ExecValue,
  type OutputValue,
} from "./protocol.ts";

/**
 * How long output is read after a command's end. Later output belongs to a background process, which may keep the pipe
 * open indefinitely.
 */
const DRAIN_MS = 100;
const SHELL = ["/bin/bash", "/usr/bin/bash"].find((path) => existsSync(path));
/** Writes the shell's last working directory to descriptor 3, so that the next command can start there. */
const REPORT_CWD = `trap 'pwd -P >&3 2>/dev/null' EXIT; eval "$1"`;

export const shellName = (): string => SHELL ?? "/bin/sh";

/** Runs commands, each in its own process group, and can terminate them. */
export class Commands {
  readonly #running = new Map<number, Running>();
  /** Process groups that may still have members, because a background process outlives its command. */
  readonly #groups = new Set<number>();
  #secrets: readonly string[] = [];

  /** Adds secrets to mask in the output of every command that starts from now on. */
  addSecrets(secrets: readonly string[]): void {
    this.#secrets = secrets;
  }

  run(request: ExecRequest, env: Record<string, string>): Promise<ExecValue> {
    if (!statSync(request.cwd, { throwIfNoEntry: false })?.isDirectory())
      throw new Fault("no_such_directory", "The working directory does not exist.");
    const [program, ...args] = "argv" in request.run ? request.run.argv : shellArgv(request.run.command);
    if (program === undefined) throw new Fault("invalid_request", "No program to run.");
    const child = spawn(program, args, {
      cwd: request.cwd,
      env: { ...env, ...request.env },
      detached: true,
      stdio: ["ignore", "pipe", "pipe", "pipe"],
    });
    const running = new Running(child, request, this.#secrets, (pid) => this.#forgetIfGone(pid));
    if (child.pid !== undefined) this.#groups.add(child.pid);
    this.#running.set(request.id, running);
    return running.ended.finally(() => this.#running.delete(request.id));
  }

  /** Terminates one command. Returns whether it was running. */
  stop(id: number): boolean {
    const running = this.#running.get(id);
    running?.stop();
    return running !== undefined;
  }

  /** Returns the output of a command since the last call. */
  output(id: number): OutputValue {
    const running = this.#running.get(id);
    return running ? { ...running.takeOutput(), running: true } : { output: "", truncated: false, running: false };
  }

  signalAll(signal: NodeJS.Signals): void {
    for (const pid of this.#groups) signalGroup(pid, signal);
  }

  #forgetIfGone(pid: number): void {
    if (!signalGroup(pid, 0)) this.#groups.delete(pid);
  }
}

const shellArgv = (command: string): string[] =>
  SHELL
    ? [SHELL, "--noprofile", "--norc", "-c", REPORT_CWD, "bash", command]
    : ["/bin/sh", "-c", REPORT_CWD, "sh", command];

class Running {
  readonly ended: Promise<ExecValue>;
  readonly #child: ChildProcess;
  #timedOut = false;
  #stopped = false;
  #timers: NodeJS.Timeout[] = [];
  #output = new HeadTail(OUTPUT_BYTES_MAX);

  constructor(
    child: ChildProcess,
    request: ExecRequest,
    secrets: readonly string[],
    onGroupMayBeGone: (pid: number) => void,
  ) {
    this.#child = child;
    const cwd = new HeadTail(8_192);
    const masker = new StreamMasker(secrets); // one masker for both streams, in the order in which their data arrives
    collect(child, 1, (chunk) => this.#output.push(masker.push(chunk)));
    collect(child, 2, (chunk) => this.#output.push(masker.push(chunk)));
    collect(child, 3, (chunk) => cwd.push(chunk));
    this.#timers.push(setTimeout(() => this.#timeOut(), request.timeoutMs));
    this.ended = new Promise((resolve, reject) => {
      child.once("error", (error) => reject(new Fault("cannot_start", error.message)));
      child.once("exit", (exitCode, signal) =>
        this.#whenDrained(() => {
          this.#timers.forEach(clearTimeout);
          if (this.#stopped || this.#timedOut) signalGroup(child.pid, "SIGKILL");
          if (child.pid !== undefined) onGroupMayBeGone(child.pid);
          this.#output.push(masker.end());
          const { output, truncated } = this.takeOutput();
          resolve({
            exitCode,
            signal,
            timedOut: this.#timedOut,
            stopped: this.#stopped,
            output,
            truncated,
            cwd: cwd.text().text.trimEnd() || request.cwd,
          });
        }),
      );
    });
    void this.ended.catch(() => this.#timers.forEach(clearTimeout));
  }

  takeOutput(): { output: string; truncated: boolean } {
    const { text, truncated } = this.#output.text();
    this.#output = new HeadTail(OUTPUT_BYTES_MAX);
    return { output: text, truncated };
  }

  stop(): void {
    this.#stopped = true;
    this.#end();
  }

  #timeOut(): void {
    this.#timedOut = true;
    this.#end();
  }

  #end(): void {
    signalGroup(this.#child.pid, "SIGTERM");
    this.#timers.push(setTimeout(() => signalGroup(this.#child.pid, "SIGKILL"), KILL_AFTER_MS));
  }

  /** Waits for the remaining output, but not for background processes that keep the pipe open. */
  #whenDrained(then: () => void): void {
    const tooLong = setTimeout(then, DRAIN_MS);
    this.#child.once("close", () => {
      clearTimeout(tooLong);
      then(); // a second call has no effect, because the promise is settled
    });
  }
}

/**
 * Continues to read after the command's end, so that a background process does not block on a full pipe or fail on a
 * closed one.
 */
function collect(child: ChildProcess, descriptor: 1 | 2 | 3, take: (chunk: Buffer) => void): void {
  const stream = child.stdio[descriptor];
  if (stream && "on" in stream) {
    stream.on("data", take);
    stream.on("error", () => undefined);
  }
}

/** Sends a signal to a process group; signal 0 only checks it. Returns whether the group has members. */
export function signalGroup(pid: number | undefined, signal: NodeJS.Signals | 0): boolean {
  if (pid === undefined) return false;
  try {
    process.kill(-pid, signal);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
