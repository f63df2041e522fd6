import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, closeSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { LogFields, Logger } from "@millwright/telemetry";
import { nodeArguments } from "@millwright/terminal";

const WORKER_MAIN = new URL("../../worker/src/main.ts", import.meta.url);
/** Exit code of a worker whose settings are invalid. */
const MISCONFIGURED = 2;
/**
 * Maximum number of distinct lines of workers that are printed on the console; further lines are only in their logs.
 */
const CONSOLE_LINES_MAX = 200;
const RESTART_DELAYS_MS = [200, 500, 1_000, 2_000, 5_000];
/** Uptime after which a worker counts as healthy, which resets the restart delay. */
const HEALTHY_MS = 60_000;

export type WorkerSettings = {
  url: string;
  workerKey: string;
  name: string;
  count: number;
  slots: number;
  sandbox: string;
  /** Directory that contains a working directory and a log per worker. */
  dir: string;
  /** The complete environment that workers inherit from this process. */
  env: Readonly<Record<string, string>>;
};

/** Returns the path of a worker's log; `dir` as in `WorkerSettings`. */
export const workerLog = (dir: string, index: number): string => join(dir, `worker-${index + 1}.log`);

/**
 * Supervises worker processes and restarts one that ends. Each worker reads a pipe from this process and exits when it
 * closes, so no worker outlives the platform, however the platform ends.
 */
export class WorkerSupervisor {
  readonly #settings: WorkerSettings;
  readonly #log: Logger;
  readonly #children = new Map<number, ChildProcess>();
  readonly #print: (line: string) => void;
  readonly #printed = new Set<string>();
  #isStopping = false;

  /**
   * `print` receives each distinct line that workers write to standard error: warnings of the start, and the reason why
   * a worker cannot start.
   */
  constructor(settings: WorkerSettings, log: Logger, print: (line: string) => void) {
    this.#settings = settings;
    this.#log = log;
    this.#print = print;
  }

  start(): void {
    mkdirSync(this.#settings.dir, { recursive: true, mode: 0o700 });
    for (let index = 0; index < this.#settings.count; index++) this.#launch(index, 0);
  }

  /**
   * Stops the workers, which interrupt their runs, return the leases and exit, and waits until they have exited. The
   * runs continue on other workers or after the next start.
   */
  async stop(): Promise<void> {
    this.#isStopping = true;
    const children = [...this.#children.values()];
    await Promise.all(
      children.map(async (child) => {
        const exited = once(child, "exit");
        child.stdin?.end();
        if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) await exited;
      }),
    );
  }

  /** Prints each distinct line once: several workers, and restarted workers, write the same lines. */
  #showOnConsole(line: string): void {
    if (this.#printed.has(line) || this.#printed.size >= CONSOLE_LINES_MAX) return;
    this.#printed.add(line);
    this.#print(line);
  }

  /**
   * Starts one worker. If the start itself fails, for instance because the disk is full, it is retried with the same
   * delays as after an early exit.
   */
  #launch(index: number, failures: number): void {
    const startedMs = performance.now();
    const restart = (fields: LogFields): void => {
      this.#children.delete(index);
      if (this.#isStopping) return;
      const next = performance.now() - startedMs > HEALTHY_MS ? 0 : failures + 1;
      const delayMs = RESTART_DELAYS_MS[Math.min(next, RESTART_DELAYS_MS.length - 1)]!;
      this.#log.warn({ ...fields, delayMs }, "a worker ended and is started again");
      setTimeout(() => this.#isStopping || this.#launch(index, next), delayMs).unref();
    };
    try {
      const child = this.#spawn(index);
      this.#children.set(index, child);
      child.on("error", (error) => child.pid === undefined && restart({ error }));
      if (!child.stderr) return; // the process could not be created
      createInterface({ input: child.stderr }).on("line", (line) => {
        append(workerLog(this.#settings.dir, index), line);
        this.#showOnConsole(`worker: ${line}`);
      });
      child.once("exit", (exitCode, signal) => {
        if (exitCode === MISCONFIGURED && !this.#isStopping)
          this.#showOnConsole("No run can be executed, because workers do not start with these settings.");
        restart({ exitCode, signal });
      });
    } catch (error) {
      restart({ error });
    }
  }

  #spawn(index: number): ChildProcess {
    const { url, workerKey, name, slots, sandbox, dir, env } = this.#settings;
    const ownDir = join(dir, `worker-${index + 1}`);
    mkdirSync(ownDir, { recursive: true, mode: 0o700 });
    const log = openSync(workerLog(dir, index), "a", 0o600);
    try {
      return spawn(process.execPath, nodeArguments(WORKER_MAIN), {
        cwd: ownDir, // not the platform's directory, which often contains the data directory and a checkout
        stdio: ["pipe", log, "pipe"],
        env: {
          ...env,
          MILLWRIGHT_URL: url,
          MILLWRIGHT_WORKER_KEY: workerKey,
          MILLWRIGHT_WORKER_ID: name,
          MILLWRIGHT_WORKER_SLOTS: String(slots),
          MILLWRIGHT_WORKER_DIR: ownDir,
          MILLWRIGHT_WORKER_SUPERVISED: "1",
          MILLWRIGHT_SANDBOX: sandbox,
        },
      });
    } finally {
      closeSync(log); // the child has its own descriptor
    }
  }
}

/** Appends a line to a log. A log that cannot be written, for instance on a full disk, must not stop the platform. */
function append(path: string, line: string): void {
  try {
    appendFileSync(path, `${line}\n`);
  } catch {
    // the line is on the console
  }
}
