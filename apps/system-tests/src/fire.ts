/** Something that is killed and comes back. */
export type Kindling = {
  readonly name: string;
  /** Whether it must not be killed just now. */
  isSpared?(): Promise<boolean>;
  kill(): Promise<void>;
  /** Answers when it does its work again; at once when nobody waits for it any more. Errors: when it does not come back. */
  revive(fire: Readonly<Pick<Fire, "isBurning" | "isAbandoned">>): Promise<void>;
};

/** Kills one thing at a time, in an order of chance, each when the one before is back. */
export class Fire {
  /** What was killed, in order. */
  readonly kills: string[] = [];
  isBurning = false;
  /** What was killed last need not come back. */
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
    this.#burning.catch(() => {}); // told by stop
  }

  /** Answers when all is back. Errors: what did not come back. */
  async stop(): Promise<void> {
    this.isBurning = false;
    await this.#burning;
  }

  /** For when all shall die: leaves down what was killed last. Answers when nothing more is done. */
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
