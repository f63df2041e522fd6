import { setTimeout as pause } from "node:timers/promises";
import { Program } from "./program.ts";

const READY_TIMEOUT_MS = 120_000;
const POLL_MS = 50;

export type MemberOptions = {
  readonly name: string;
  /** Below `apps/`. */
  readonly main: string;
  readonly log: string;
  readonly env: Readonly<Record<string, string>>;
  /** Whether it does its work; told what it wrote since its last launch. */
  isReady(written: string): Promise<boolean>;
};

/** One process of a cluster, started as often as it is needed, each time with the same settings. */
export class Member {
  readonly name: string;
  readonly #options: MemberOptions;
  #program: Program | undefined;

  constructor(options: MemberOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /** Starts it, unless it runs. Does not wait for it. */
  launch(): void {
    const { main, log, env } = this.#options;
    if (this.#program === undefined || this.#program.hasEnded) this.#program = new Program(main, { log, env });
  }

  /** Waits until it does its work. Errors: what it wrote, when it ends before that. */
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

  /** What it wrote since its last launch; nothing of one that was killed. */
  output(): string {
    return this.#program?.output() ?? "";
  }

  /** 0 while it does not run. */
  get pid(): number {
    return this.#program?.pid ?? 0;
  }

  get isRunning(): boolean {
    return this.#program?.hasEnded === false;
  }

  /** Such as SIGSTOP; to nobody while it does not run. */
  signal(signal: NodeJS.Signals): void {
    this.#program?.signal(signal);
  }

  /** SIGKILL, with all that it started. */
  async kill(): Promise<void> {
    const program = this.#program;
    this.#program = undefined;
    await program?.kill();
  }

  /** SIGTERM. Answers whether it ended in time, by itself, with exit code 0; one that was killed before has nothing to answer for. */
  async stop(): Promise<boolean> {
    return (await this.#program?.stop()) ?? true;
  }
}
