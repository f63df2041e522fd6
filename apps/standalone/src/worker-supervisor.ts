import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, closeSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { LogFields, Logger } from "@millwright/telemetry";

const WORKER_MAIN = fileURLToPath(new URL("../../worker/src/main.ts", import.meta.url));
/** A worker's exit code for settings that it does not accept. */
const MISCONFIGURED = 2;
/** Distinct lines of workers that are printed on the console at most; the rest is in their logs. */
const CONSOLE_LINES_MAX = 200;
const RESTART_DELAYS_MS = [200, 500, 1_000, 2_000, 5_000];
/** A worker that lived this long was healthy: its next restart is quick again. */
const HEALTHY_MS = 60_000;

export type WorkerSettings = {
  url: string;
  workerKey: string;
  name: string;
  count: number;
  slots: number;
  sandbox: string;
  /** Contains a directory and a log per worker. */
  dir: string;
  /** What the worker inherits; nothing else of this process's environment reaches it. */
  env: Readonly<Record<string, string>>;
};

/** A worker's log; `dir` as in `WorkerSettings`. */
export const workerLog = (dir: string, index: number): string => join(dir, `worker-${index + 1}.log`);

/**
 * Keeps worker processes running: one that dies is started again. Each holds the other end of a pipe to us, so that no
 * worker outlives the platform, however it dies.
 */
export class WorkerSupervisor {
  readonly #settings: WorkerSettings;
  readonly #log: Logger;
  readonly #children = new Map<number, ChildProcess>();
  readonly #print: (line: string) => void;
  readonly #printed = new Set<string>();
  #isStopping = false;

  /** `print` gets each line that workers write to standard error once: their start-up warnings, and why they cannot start. */
  constructor(settings: WorkerSettings, log: Logger, print: (line: string) => void) {
    this.#settings = settings;
    this.#log = log;
    this.#print = print;
  }

  start(): void {
    mkdirSync(this.#settings.dir, { recursive: true, mode: 0o700 });
    for (let index = 0; index < this.#settings.count; index++) this.#launch(index, 0);
  }

  /** Asks the workers to leave at once (their runs go on elsewhere or later) and waits until they are gone. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    const children = [...this.#children.values()];
    await Promise.all(
      children.map(async (child) => {
        const gone = once(child, "exit");
        child.stdin?.end();
        if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) await gone;
      }),
    );
  }

  /** Several workers, and a worker that is restarted, write the same lines: the console shows each once. */
  #showOnConsole(line: string): void {
    if (this.#printed.has(line) || this.#printed.size >= CONSOLE_LINES_MAX) return;
    this.#printed.add(line);
    this.#print(line);
  }

  /** Starts one worker. A start that fails, for instance because the disk is full, is repeated like the start after an early exit. */
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
      if (!child.stderr) return; // no process could be created
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
      return spawn(process.execPath, ["--conditions=@millwright/source", "--no-warnings", WORKER_MAIN], {
        cwd: ownDir, // not the platform's, which often contains the data directory and a checkout
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
      closeSync(log); // the child has a descriptor of its own
    }
  }
}

/** Adds a line to a log. A log that cannot be written, such as on a full disk, must not end the platform. */
function append(path: string, line: string): void {
  try {
    appendFileSync(path, `${line}\n`);
  } catch {
    // the console has the line
  }
}
