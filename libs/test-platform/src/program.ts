import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const APPS = fileURLToPath(new URL("../../../apps/", import.meta.url));
const STOP_TIMEOUT_MS = 20_000;
/**
 * Compile cache of Node.js for Millwright programs; it halves the load time. An entry is valid for one file content and
 * one version of Node.js.
 */
const COMPILE_CACHE = fileURLToPath(new URL("../../../node_modules/.cache/millwright-compile", import.meta.url));

const compiled = (main: string): string => main.replace("/src/", "/dist/").replace(/\.ts$/, ".js");

/** A Millwright program as a separate process that leads its own process group. */
export class Program {
  readonly child: ChildProcess;
  readonly #log: string;
  readonly #begin: number;

  /**
   * Starts the program. `main` is a path below `apps/`. Output is appended to the file `log`. From the test's
   * environment the program receives only PATH and HOME. `wrapper` is a command that starts it. With `isCompiled` it
   * runs the compiled output, which must exist (`npm run typecheck`), as the images do.
   */
  constructor(
    main: string,
    options: {
      env: Readonly<Record<string, string>>;
      log: string;
      args?: readonly string[];
      wrapper?: readonly string[];
      isCompiled?: boolean;
    },
  ) {
    this.#log = options.log;
    const output = openSync(options.log, "a", 0o600);
    this.#begin = fstatSync(output).size;
    const { PATH = "", HOME = "" } = process.env;
    const node = [
      process.execPath,
      "--no-warnings",
      ...(options.isCompiled ? [compiled(APPS + main)] : ["--conditions=@millwright/source", APPS + main]),
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

  /** Returns the output of this process, without what the file contained before. */
  output(): string {
    return readFileSync(this.#log).subarray(this.#begin).toString();
  }

  signal(signal: NodeJS.Signals): void {
    if (!this.hasEnded) process.kill(this.pid, signal);
  }

  /** Sends SIGKILL to the process group. */
  async kill(): Promise<void> {
    if (this.hasEnded) return;
    const ended = once(this.child, "exit");
    process.kill(-this.pid, "SIGKILL");
    await ended;
  }

  /**
   * Sends SIGTERM, then SIGKILL to the group if the process does not exit in time. Returns whether it exited by itself
   * with code 0.
   */
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
