import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Logger } from "@millwright/telemetry";

const WORKER_MAIN = fileURLToPath(new URL("../../worker/src/main.ts", import.meta.url));
/** A worker's exit code for settings that it does not take: nothing but another start of the platform mends them. */
const MISCONFIGURED = 2;
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
  /** Holds a directory and a log per worker. */
  dir: string;
  /** PATH and HOME for the worker. */
  env: Readonly<Record<string, string>>;
};

/**
 * Keeps worker processes running: one that dies is started again. Each holds the other end of a pipe to us, so that no
 * worker outlives the platform, however it dies.
 */
export class WorkerSupervisor {
  readonly #settings: WorkerSettings;
  readonly #log: Logger;
  readonly #children = new Map<number, ChildProcess>();
  readonly #tell: (text: string) => void;
  #isStopping = false;
  #isTold = false;

  /** `tell` hears, once, why workers cannot start with their settings: a log is looked into too late for that. */
  constructor(settings: WorkerSettings, log: Logger, tell: (text: string) => void) {
    this.#settings = settings;
    this.#log = log;
    this.#tell = tell;
  }

  start(): void {
    mkdirSync(this.#settings.dir, { recursive: true, mode: 0o700 });
    for (let index = 0; index < this.#settings.count; index++) this.#launch(index, 0);
  }

  /** Asks the workers to leave at once (their runs go on elsewhere or later) and waits until they are gone. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    const children = [...this.#children.values()];
    await Promise.all(children.map(async (child) => {
      const gone = once(child, "exit");
      child.stdin?.end();
      if (child.exitCode === null && child.signalCode === null) await gone;
    }));
  }

  #tellWhy(logPath: string): void {
    if (this.#isTold) return;
    this.#isTold = true;
    const said = readFileSync(logPath, "utf8");
    this.#tell(`No run can be executed, because workers do not start: ${said.slice(Math.max(0, said.lastIndexOf("Invalid configuration"), said.length - 2_000)).trim()}`);
  }

  #launch(index: number, failures: number): void {
    const { url, workerKey, name, slots, sandbox, dir, env } = this.#settings;
    const logPath = join(dir, `worker-${index + 1}.log`);
    const log = openSync(logPath, "a", 0o600);
    const startedMs = performance.now();
    const child = spawn(process.execPath, ["--conditions=@millwright/source", "--no-warnings", WORKER_MAIN], {
      stdio: ["pipe", log, log],
      env: {
        ...env,
        MILLWRIGHT_URL: url,
        MILLWRIGHT_WORKER_KEY: workerKey,
        MILLWRIGHT_WORKER_ID: name,
        MILLWRIGHT_WORKER_SLOTS: String(slots),
        MILLWRIGHT_WORKER_DIR: join(dir, `worker-${index + 1}`),
        MILLWRIGHT_WORKER_SUPERVISED: "1",
        MILLWRIGHT_SANDBOX: sandbox,
      },
    });
    closeSync(log); // the child has it
    this.#children.set(index, child);
    child.once("exit", (code, signal) => {
      this.#children.delete(index);
      if (this.#isStopping) return;
      if (code === MISCONFIGURED) this.#tellWhy(logPath);
      const next = performance.now() - startedMs > HEALTHY_MS ? 0 : failures + 1;
      const delayMs = RESTART_DELAYS_MS[Math.min(next, RESTART_DELAYS_MS.length - 1)]!;
      this.#log.warn({ exitCode: code, signal, delayMs }, "a worker ended and is started again");
      setTimeout(() => this.#isStopping || this.#launch(index, next), delayMs).unref();
    });
  }
}
