/** A counting semaphore with a first-in, first-out queue. */
export class Semaphore {
  #available: number;
  readonly #queue: (() => void)[] = [];

  constructor(permits: number) {
    this.#available = permits;
  }

  /** Returns whether a permit was acquired within the timeout; the caller releases it. */
  acquire(timeoutMs: number): Promise<boolean> {
    if (this.#available > 0) {
      this.#available -= 1;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const grant = (): void => {
        clearTimeout(timer);
        resolve(true);
      };
      const timer = setTimeout(() => {
        this.#queue.splice(this.#queue.indexOf(grant), 1);
        resolve(false);
      }, timeoutMs);
      this.#queue.push(grant);
    });
  }

  release(): void {
    const grantNext = this.#queue.shift();
    if (grantNext) grantNext();
    else this.#available += 1;
  }
}
