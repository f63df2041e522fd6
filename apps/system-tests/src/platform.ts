import { mkdirSync, mkdtempSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "@millwright/database";
import { killAll, processesWith } from "./processes.ts";
import { Program } from "./program.ts";

export type PlatformOptions = {
  /** Default 1. */
  workers?: number;
  /** Per worker; default 4. */
  slots?: number;
  /** Divides leases, offers and heartbeats. */
  timeScale?: number;
  env?: Readonly<Record<string, string>>;
};

/** The key of the first team's owner on every platform of these tests. */
export const OWNER_KEY = "mw_the-owners-key-of-the-system-tests";

const PREFIX = "millwright-system-";
const READY_TIMEOUT_MS = 60_000;
const POLL_MS = 50;

/** A standalone platform: real processes, its own directory, port and database. It keeps its address when started again. */
export class Platform {
  readonly url: string;
  /** Everything of it lies here; a place for the test's files too. */
  readonly dir: string;
  readonly #port: number;
  readonly #options: PlatformOptions;
  #program: Program | undefined;

  private constructor(dir: string, port: number, options: PlatformOptions) {
    this.dir = dir;
    this.#port = port;
    this.url = `http://127.0.0.1:${port}`;
    this.#options = options;
  }

  /** Answers when it is ready. Errors: its output, when it ends before that. */
  static async start(options: PlatformOptions = {}): Promise<Platform> {
    await removeOrphans();
    const platform = new Platform(mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-`)), await freePort(), options);
    try {
      await platform.start();
    } catch (error) {
      await platform.remove();
      throw error;
    }
    return platform;
  }

  /** Starts it again on the same directory. */
  async start(): Promise<void> {
    const { workers = 1, slots = 4, timeScale = 1, env = {} } = this.#options;
    mkdirSync(this.path("repositories"), { recursive: true });
    this.#program = new Program("standalone/src/main.ts", {
      log: this.path("platform.out"),
      env: {
        PORT: String(this.#port), MILLWRIGHT_DATA_DIR: this.path("data"), MILLWRIGHT_BOOTSTRAP_API_KEY: OWNER_KEY, MILLWRIGHT_WORKERS: String(workers),
        MILLWRIGHT_WORKER_SLOTS: String(slots), MILLWRIGHT_TIME_SCALE: String(timeScale), MILLWRIGHT_LOCAL_REPOSITORY_ROOTS: this.path("repositories"), ...env,
      },
    });
    for (const deadline = Date.now() + READY_TIMEOUT_MS; !(await this.isReady()); await pause(POLL_MS)) {
      if (this.#program.hasEnded || Date.now() > deadline) throw new Error(`The platform did not start:\n${this.output()}`);
    }
  }

  /** A file or directory of this platform. */
  path(...names: string[]): string {
    return join(this.dir, ...names);
  }

  /** What it wrote last, for the messages of tests. */
  output(): string {
    return this.#program?.output().slice(-4_000) ?? "";
  }

  async isReady(): Promise<boolean> {
    return fetch(`${this.url}/readyz`).then(({ ok }) => ok, () => false);
  }

  /** SIGKILL to everything at once: platform, workers, their sandboxes, the database. */
  async killEverything(): Promise<void> {
    const killed = this.#program?.kill();
    killAll(processesWith(this.dir).map(({ pid }) => pid));
    await killed;
  }

  /** As Ctrl-C does. Answers whether it stopped in time, by itself, with exit code 0. */
  async stop(): Promise<boolean> {
    return (await this.#program?.stop()) ?? true;
  }

  /** Ends it and leaves nothing behind. */
  async remove(): Promise<void> {
    await this.stop();
    await removeDirectory(this.dir);
  }
}

async function removeDirectory(dir: string): Promise<void> {
  killAll(processesWith(dir).map(({ pid }) => pid));
  await rm(dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

/** What a killed test run left behind. */
async function removeOrphans(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const owner = name.startsWith(PREFIX) ? Number(name.slice(PREFIX.length).split("-")[0]) : Number.NaN;
    if (Number.isInteger(owner) && !isAlive(owner)) await removeDirectory(join(tmpdir(), name));
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
