import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const APPS = fileURLToPath(new URL("../..", import.meta.url));
const STOP_TIMEOUT_MS = 20_000;
/** Compiled modules of our programs: loading them again takes half the time. Valid for one content and one version of Node.js. */
const COMPILE_CACHE = fileURLToPath(new URL("../../../node_modules/.cache/millwright-compile", import.meta.url));

/** A program of ours as a process of its own, leading a group of its own. */
export class Program {
  readonly child: ChildProcess;
  readonly #log: string;
  readonly #begin: number;

  /** `main` is below `apps/`; output is added to the file `log`. Of our environment it gets only PATH and HOME. `wrapper`: a command that starts it. */
  constructor(
    main: string,
    options: {
      env: Readonly<Record<string, string>>;
      log: string;
      args?: readonly string[];
      wrapper?: readonly string[];
    },
  ) {
    this.#log = options.log;
    const output = openSync(options.log, "a", 0o600);
    this.#begin = fstatSync(output).size;
    const { PATH = "", HOME = "" } = process.env;
    const node = [
      process.execPath,
      "--conditions=@millwright/source",
      "--no-warnings",
      APPS + main,
      ...(options.args ?? []),
    ];
    const [file, ...args] = [...(options.wrapper ?? []), ...node];
    this.child = spawn(file!, args, {
      detached: true,
      stdio: ["pipe", output, output],
      env: { PATH, HOME, NODE_COMPILE_CACHE: COMPILE_CACHE, ...options.env },
    });
    closeSync(output);
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** What it wrote; not what was in the file before. */
  output(): string {
    return readFileSync(this.#log).subarray(this.#begin).toString();
  }

  signal(signal: NodeJS.Signals): void {
    if (!this.hasEnded) process.kill(this.pid, signal);
  }

  /** SIGKILL to it and everything it started in its group. */
  async kill(): Promise<void> {
    if (this.hasEnded) return;
    const ended = once(this.child, "exit");
    process.kill(-this.pid, "SIGKILL");
    await ended;
  }

  /** SIGTERM, then SIGKILL to the group when it takes too long. Answers whether it stopped by itself, with exit code 0. */
  async stop(): Promise<boolean> {
    if (this.hasEnded) return this.child.exitCode === 0;
    const ended = once(this.child, "exit");
    const late = setTimeout(() => void this.kill(), STOP_TIMEOUT_MS);
    this.signal("SIGTERM");
    await ended;
    clearTimeout(late);
    return this.child.exitCode === 0;
  }
}
