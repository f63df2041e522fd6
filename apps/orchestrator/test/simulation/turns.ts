import { setImmediate as settled } from "node:timers/promises";

type Turn = { readonly about: string | undefined; readonly take: () => Promise<void> };

/**
 * Runs concurrent operations one step at a time. Each operation waits for its turn before every call to the store, and
 * the caller that has the script determines whose turn it is. The same script always produces the same sequence.
 */
export class Turns {
  #waiting: Turn[] = [];
  readonly #failures: unknown[] = [];

  get inFlight(): number {
    return this.#waiting.length;
  }

  /** The subjects of the waiting operations. */
  get abouts(): string[] {
    return this.#waiting.flatMap(({ about }) => about ?? []);
  }

  /** Starts an operation, which runs up to its first turn. */
  async begin(
    about: string | undefined,
    act: (step: <T>(call: () => Promise<T>) => Promise<T>) => Promise<unknown>,
  ): Promise<void> {
    const step = <T>(call: () => Promise<T>): Promise<T> =>
      new Promise((resolve, reject) => {
        this.#waiting.push({ about, take: () => call().then(resolve, reject) });
      });
    void act(step).catch((error: unknown) => this.#failures.push(error));
    await settled();
  }

  /** Gives a waiting operation its turn, up to its next one. Throws the first error of any operation. */
  async take(index: number): Promise<void> {
    const [turn] = this.#waiting.splice(index % this.#waiting.length, 1);
    await turn!.take();
    await settled();
    if (this.#failures.length > 0) throw this.#failures[0];
  }

  /** Runs all started operations to their end, in order. */
  async finish(): Promise<void> {
    while (this.#waiting.length > 0) await this.take(0);
  }
}
