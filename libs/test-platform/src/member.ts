import { setTimeout as pause } from "node:timers/promises";
import { Program } from "./program.ts";

const READY_TIMEOUT_MS = 300_000;
const POLL_MS = 50;

export type MemberOptions = {
  readonly name: string;
  /** Path of the main module below `apps/`. */
  readonly main: string;
  readonly log: string;
  readonly isCompiled?: boolean | undefined;
  /** Returns the environment of the next launch. */
  env(): Readonly<Record<string, string>>;
  /** Returns whether the process is ready. `written` is its output since the last launch. */
  isReady(written: string): Promise<boolean>;
};

/** One process of a cluster. It can be restarted any number of times, each time with the settings of that time. */
export class Member {
  readonly name: string;
  readonly #options: MemberOptions;
  #program: Program | undefined;

  constructor(options: MemberOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /** Starts the process unless it is running. Does not wait until it is ready. */
  launch(): void {
    const { main, log, isCompiled = false } = this.#options;
    if (this.#program === undefined || this.#program.hasEnded)
      this.#program = new Program(main, { log, isCompiled, env: this.#options.env() });
  }

  /** Waits until the process is ready. Throws with its output if it exits first. */
  async ready(): Promise<void> {
    for (
      const deadline = Date.now() + READY_TIMEOUT_MS;
      !(await this.#options.isReady(this.output()));
      await pause(POLL_MS)
    ) {
      if (this.#program?.hasEnded !== false || Date.now() > deadline)
        throw new Error(`${this.name} is not ready:\n${this.output().slice(-4_000)}`);
    }
  }

  /** Returns the output since the last launch; empty after `kill`. */
  output(): string {
    return this.#program?.output() ?? "";
  }

  /** Process id; 0 while it is not running. */
  get pid(): number {
    return this.#program?.pid ?? 0;
  }

  get isRunning(): boolean {
    return this.#program?.hasEnded === false;
  }

  /** Sends a signal such as SIGSTOP. Does nothing while the process is not running. */
  signal(signal: NodeJS.Signals): void {
    this.#program?.signal(signal);
  }

  /** Sends SIGKILL to the process and its group. */
  async kill(): Promise<void> {
    const program = this.#program;
    this.#program = undefined;
    await program?.kill();
  }

  /**
   * Sends SIGTERM. Returns whether the process exited in time, by itself, with code 0. Returns true if it was killed
   * before.
   */
  async stop(): Promise<boolean> {
    return (await this.#program?.stop()) ?? true;
  }
}
