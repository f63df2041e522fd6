/** A process that is killed and restarted. */
export type Kindling = {
  readonly name: string;
  /** Returns true while the process must not be killed. */
  isSpared?(): Promise<boolean>;
  kill(): Promise<void>;
  /**
   * Restarts the process and resolves when it works again. Stops waiting for anything else once `isBurning` is false.
   * Throws if the process does not come back.
   */
  revive(fire: Readonly<Pick<Fire, "isBurning" | "isAbandoned">>): Promise<void>;
};

/** Kills one process at a time in random order; the next kill waits until the previous process is back. */
export class Fire {
  /** Names of the killed processes, in order. */
  readonly kills: string[] = [];
  isBurning = false;
  /** If true, the process that was killed last does not have to come back. */
  isAbandoned = false;
  readonly #kindling: readonly Kindling[];
  #burning: Promise<void> = Promise.resolve();

  constructor(kindling: readonly Kindling[]) {
    this.#kindling = kindling;
  }

  start(): void {
    if (this.isBurning) return;
    this.isBurning = true;
    this.isAbandoned = false;
    this.#burning = this.#burn();
    this.#burning.catch(() => {}); // `stop` reports the error.
  }

  /** Resolves when all processes are back. Throws if one does not come back. */
  async stop(): Promise<void> {
    this.isBurning = false;
    await this.#burning;
  }

  /**
   * Stops without waiting for the process that was killed last. Used before everything is killed. Resolves when no
   * further action is taken.
   */
  async abandon(): Promise<void> {
    this.isBurning = false;
    this.isAbandoned = true;
    await this.#burning.catch(() => {});
  }

  async #burn(): Promise<void> {
    while (this.isBurning) for (const one of shuffled(this.#kindling)) await this.#kill(one);
  }

  async #kill(one: Kindling): Promise<void> {
    if (!this.isBurning || (await one.isSpared?.())) return;
    this.kills.push(one.name);
    await one.kill();
    if (!this.isAbandoned) await one.revive(this);
  }
}

const shuffled = <T>(all: readonly T[]): T[] =>
  all
    .map((one) => ({ one, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ one }) => one);
