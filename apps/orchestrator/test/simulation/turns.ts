import { setImmediate as settled } from "node:timers/promises";

type Turn = { readonly about: string | undefined; readonly take: () => Promise<void> };

/**
 * Things that happen at once, one step at a time: each waits for its turn before every call to the store, and whoever
 * holds the script says whose turn it is. The same script makes the same story.
 */
export class Turns {
  #waiting: Turn[] = [];
  readonly #failures: unknown[] = [];

  get inFlight(): number {
    return this.#waiting.length;
  }

  /** What those that wait are about. */
  get abouts(): string[] {
    return this.#waiting.flatMap(({ about }) => about ?? []);
  }

  /** Begins something; it runs up to its first turn. */
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

  /** Gives one of those that wait its turn, and lets it go on to its next one. Errors: whatever went wrong. */
  async take(index: number): Promise<void> {
    const [turn] = this.#waiting.splice(index % this.#waiting.length, 1);
    await turn!.take();
    await settled();
    if (this.#failures.length > 0) throw this.#failures[0];
  }

  /** Lets everything end that has begun, in order. */
  async finish(): Promise<void> {
    while (this.#waiting.length > 0) await this.take(0);
  }
}
