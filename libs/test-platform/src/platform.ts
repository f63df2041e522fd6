import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { OWNER_KEY, type Deployment, type DeploymentOptions } from "./deployment.ts";
import { newDirectory, removeDirectory } from "./directory.ts";
import { steadyPort } from "./ports.ts";
import { killAll, processesWith } from "./processes.ts";
import { Program } from "./program.ts";

const READY_TIMEOUT_MS = 300_000;
const POLL_MS = 50;

/** A standalone platform: one process with its database and, by default, one worker. */
export class Platform implements Deployment {
  readonly url: string;
  readonly dir: string;
  readonly timeScale: number;
  readonly hasChaos = false;
  readonly #port: number;
  readonly #options: DeploymentOptions;
  #program: Program | undefined;

  private constructor(dir: string, port: number, options: DeploymentOptions) {
    this.dir = dir;
    this.timeScale = options.timeScale ?? 1;
    this.#port = port;
    this.url = `http://127.0.0.1:${port}`;
    this.#options = options;
  }

  /** Starts a platform and resolves when it is ready. Throws with its output if it exits first. */
  static async start(options: DeploymentOptions = {}): Promise<Platform> {
    const platform = new Platform(await newDirectory(), await steadyPort(), options);
    try {
      await platform.start();
    } catch (error) {
      await platform.remove();
      throw error;
    }
    return platform;
  }

  async start(): Promise<void> {
    const { workers = 1, slots = 4, env = {} } = this.#options;
    mkdirSync(this.path("repositories"), { recursive: true });
    this.#program = new Program("standalone/src/main.ts", {
      log: this.path("platform.out"),
      ...(this.#options.wrapper && { wrapper: this.#options.wrapper }),
      env: {
        PORT: String(this.#port),
        MILLWRIGHT_DATA_DIR: this.path("data"),
        MILLWRIGHT_BOOTSTRAP_API_KEY: OWNER_KEY,
        MILLWRIGHT_WORKERS: String(workers),
        MILLWRIGHT_WORKER_SLOTS: String(slots),
        MILLWRIGHT_TIME_SCALE: String(this.timeScale),
        MILLWRIGHT_LOCAL_REPOSITORY_ROOTS: this.path("repositories"),
        MILLWRIGHT_SANDBOX: "optional",
        ...env,
      },
    });
    for (
      const deadline = Date.now() + READY_TIMEOUT_MS;
      !(await fetch(`${this.url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      ));
      await pause(POLL_MS)
    ) {
      if (this.#program.hasEnded || Date.now() > deadline)
        throw new Error(`The platform did not start:\n${this.output()}`);
    }
  }

  path(...names: string[]): string {
    return join(this.dir, ...names);
  }

  output(): string {
    return this.#program?.output().slice(-4_000) ?? "";
  }

  async killEverything(): Promise<void> {
    const killed = this.#program?.kill();
    killAll(processesWith(this.dir).map(({ pid }) => pid));
    await killed;
  }

  async stop(): Promise<string[]> {
    return (await this.#program?.stop()) === false ? ["standalone"] : [];
  }

  async remove(): Promise<void> {
    await this.stop();
    await removeDirectory(this.dir);
  }
}
