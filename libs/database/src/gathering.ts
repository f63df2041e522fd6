const BATCH_MAX = 100;

type Waiting<K, V> = {
  readonly key: K;
  readonly resolve: (value: V) => void;
  readonly reject: (error: unknown) => void;
};

export type GatheringOptions = {
  /** So many batches are under way at a time: more than one, where they wait for something other than each other. Each waits until it is as large as those before it. Default 1. */
  readonly atOnce?: number;
  /** A batch begins with the end of the event loop's turn, with all that was asked in it; by default with the first thing asked. */
  readonly isPatient?: boolean;
};

/**
 * Things of one kind that are asked for one by one and done together: the first goes at once, those that come while it is
 * under way go next, in one batch. What is asked begins after it was asked for, so it sees everything committed before.
 * A batch that fails is done again one by one, where that may be done: nobody fails by what others asked.
 */
export class Gathering<K, V> {
  readonly #together: (keys: readonly K[]) => Promise<readonly V[]>;
  readonly #mayRepeat: (error: unknown) => boolean;
  readonly #atOnce: number;
  readonly #isPatient: boolean;
  #waiting: Waiting<K, V>[] = [];
  #underWay = 0;
  #keysUnderWay = 0;
  #isTurnAwaited = false;

  /** `together` answers in the order of the keys. `mayRepeat` says of a failure whether it is certain that nothing was done. */
  constructor(
    together: (keys: readonly K[]) => Promise<readonly V[]>,
    mayRepeat: (error: unknown) => boolean = () => true,
    { atOnce = 1, isPatient = false }: GatheringOptions = {},
  ) {
    this.#together = together;
    this.#mayRepeat = mayRepeat;
    this.#atOnce = atOnce;
    this.#isPatient = isPatient;
  }

  ask(key: K): Promise<V> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ key, resolve, reject });
      if (this.#isPatient) this.#goAfterTurn();
      else this.#go();
    });
  }

  #goAfterTurn(): void {
    if (this.#isTurnAwaited) return;
    this.#isTurnAwaited = true;
    setImmediate(() => {
      this.#isTurnAwaited = false;
      this.#go();
    });
  }

  #go(): void {
    if (
      this.#underWay >= this.#atOnce ||
      this.#waiting.length === 0 ||
      this.#waiting.length < Math.min(this.#keysUnderWay, BATCH_MAX)
    )
      return;
    const batch = this.#waiting.splice(0, BATCH_MAX);
    this.#underWay += 1;
    this.#keysUnderWay += batch.length;
    void this.#answer(batch).finally(() => {
      this.#underWay -= 1;
      this.#keysUnderWay -= batch.length;
      this.#go();
    });
  }

  /** Never rejects. */
  async #answer(batch: readonly Waiting<K, V>[]): Promise<void> {
    try {
      const values = await this.#together(batch.map(({ key }) => key));
      for (const [n, { resolve }] of batch.entries()) resolve(values[n]!);
    } catch (error) {
      if (batch.length === 1 || !this.#mayRepeat(error)) for (const { reject } of batch) reject(error);
      else await Promise.all(batch.map((one) => this.#answer([one])));
    }
  }
}
