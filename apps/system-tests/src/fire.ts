/** Something that is killed and comes back. */
export type Kindling = {
  readonly name: string;
  /** Whether it must not be killed just now. */
  isSpared?(): Promise<boolean>;
  kill(): Promise<void>;
  /** Answers when it does its work again. Errors: when it does not come back. */
  revive(isGoingOut: () => boolean): Promise<void>;
};

/** Kills one thing at a time, in an order of chance, each when the one before is back. */
export class Fire {
  /** What was killed, in order. */
  readonly kills: string[] = [];
  readonly #kindling: readonly Kindling[];
  #isBurning = false;
  #burning: Promise<void> = Promise.resolve();

  constructor(kindling: readonly Kindling[]) {
    this.#kindling = kindling;
  }

  start(): void {
    if (this.#isBurning) return;
    this.#isBurning = true;
    this.#burning = this.#burn();
    this.#burning.catch(() => {}); // told by stop
  }

  /** Answers when all is back. Errors: what did not come back. */
  async stop(): Promise<void> {
    this.#isBurning = false;
    await this.#burning;
  }

  async #burn(): Promise<void> {
    while (this.#isBurning) for (const one of shuffled(this.#kindling)) await this.#kill(one);
  }

  async #kill(one: Kindling): Promise<void> {
    if (!this.#isBurning || (await one.isSpared?.())) return;
    this.kills.push(one.name);
    await one.kill();
    await one.revive(() => !this.#isBurning);
  }
}

const shuffled = <T>(all: readonly T[]): T[] =>
  all.map((one) => ({ one, at: Math.random() })).toSorted((a, b) => a.at - b.at).map(({ one }) => one);
