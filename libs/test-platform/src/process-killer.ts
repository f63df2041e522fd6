/** A process that is killed and restarted. */
export type KillTarget = {
  readonly name: string;
  /** Returns true while the process must not be killed. */
  isSpared?(): Promise<boolean>;
  kill(): Promise<void>;
  /**
   * Restarts the process and resolves when it works again. Stops waiting for anything else once `isKilling` is false.
   * Throws if the process does not come back.
   */
  restart(killer: Readonly<Pick<ProcessKiller, "isKilling" | "isAbandoned">>): Promise<void>;
};

/** Kills one process at a time in random order; the next kill waits until the previous process is back. */
export class ProcessKiller {
  /** Names of the killed processes, in order. */
  readonly kills: string[] = [];
  isKilling = false;
  /** If true, the process that was killed last does not have to come back. */
  isAbandoned = false;
  readonly #targets: readonly KillTarget[];
  #killing: Promise<void> = Promise.resolve();

  constructor(targets: readonly KillTarget[]) {
    this.#targets = targets;
  }

  start(): void {
    if (this.isKilling) return;
    this.isKilling = true;
    this.isAbandoned = false;
    this.#killing = this.#killRepeatedly();
    this.#killing.catch(() => {}); // `stop` reports the error.
  }

  /** Resolves when all processes are back. Throws if one does not come back. */
  async stop(): Promise<void> {
    this.isKilling = false;
    await this.#killing;
  }

  /**
   * Stops without waiting for the process that was killed last. Used before everything is killed. Resolves when no
   * further action is taken.
   */
  async abandon(): Promise<void> {
    this.isKilling = false;
    this.isAbandoned = true;
    await this.#killing.catch(() => {});
  }

  async #killRepeatedly(): Promise<void> {
    while (this.isKilling) for (const target of shuffled(this.#targets)) await this.#kill(target);
  }

  async #kill(target: KillTarget): Promise<void> {
    if (!this.isKilling || (await target.isSpared?.())) return;
    this.kills.push(target.name);
    await target.kill();
    if (!this.isAbandoned) await target.restart(this);
  }
}

const shuffled = <T>(all: readonly T[]): T[] =>
  all
    .map((item) => ({ item, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
