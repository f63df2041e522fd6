const BATCH_MAX = 100;

type Pending<K, V> = {
  readonly key: K;
  readonly resolve: (value: V) => void;
  readonly reject: (error: unknown) => void;
};

export type BatcherOptions = {
  /**
   * The number of batches that may run concurrently. Use more than one when batches wait for I/O rather than for each
   * other. A batch starts only when it is as large as those that are running. Default 1.
   */
  readonly concurrency?: number;
  /** Starts a batch at the end of the event-loop turn, with every key added in it; by default with the first key. */
  readonly isPerTurn?: boolean;
};

/**
 * Groups keys that are added one by one into batches: the first key runs at once, those added while it runs form the
 * next batch. Work for a key starts after the key was added, so it sees everything that was committed before.
 * The keys of a failed batch are retried one by one where `mayRetry` permits: no caller fails because of another's key.
 */
export class Batcher<K, V> {
  readonly #runBatch: (keys: readonly K[]) => Promise<readonly V[]>;
  readonly #mayRetry: (error: unknown) => boolean;
  readonly #concurrency: number;
  readonly #isPerTurn: boolean;
  #pending: Pending<K, V>[] = [];
  #runningBatches = 0;
  #runningKeys = 0;
  #isTurnAwaited = false;

  /**
   * `runBatch` returns results in the order of the keys. `mayRetry` returns whether it is certain that nothing was
   * done.
   */
  constructor(
    runBatch: (keys: readonly K[]) => Promise<readonly V[]>,
    mayRetry: (error: unknown) => boolean = () => true,
    { concurrency = 1, isPerTurn = false }: BatcherOptions = {},
  ) {
    this.#runBatch = runBatch;
    this.#mayRetry = mayRetry;
    this.#concurrency = concurrency;
    this.#isPerTurn = isPerTurn;
  }

  /** Adds a key to the next batch and returns its result. */
  add(key: K): Promise<V> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ key, resolve, reject });
      if (this.#isPerTurn) this.#startAfterTurn();
      else this.#start();
    });
  }

  #startAfterTurn(): void {
    if (this.#isTurnAwaited) return;
    this.#isTurnAwaited = true;
    setImmediate(() => {
      this.#isTurnAwaited = false;
      this.#start();
    });
  }

  #start(): void {
    if (
      this.#runningBatches >= this.#concurrency ||
      this.#pending.length === 0 ||
      this.#pending.length < Math.min(this.#runningKeys, BATCH_MAX)
    )
      return;
    const batch = this.#pending.splice(0, BATCH_MAX);
    this.#runningBatches += 1;
    this.#runningKeys += batch.length;
    void this.#run(batch).finally(() => {
      this.#runningBatches -= 1;
      this.#runningKeys -= batch.length;
      this.#start();
    });
  }

  /** Never rejects. */
  async #run(batch: readonly Pending<K, V>[]): Promise<void> {
    try {
      const values = await this.#runBatch(batch.map(({ key }) => key));
      for (const [n, { resolve }] of batch.entries()) resolve(values[n]!);
    } catch (error) {
      if (batch.length === 1 || !this.#mayRetry(error)) for (const { reject } of batch) reject(error);
      else await Promise.all(batch.map((pending) => this.#run([pending])));
    }
  }
}
