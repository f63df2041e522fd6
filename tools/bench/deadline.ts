/** No time is left. */
export class OutOfTime extends Error {}

/** The end of the time that all measuring may take together. */
export class Deadline {
  #atMs: number;

  constructor(ms: number) {
    this.#atMs = performance.now() + ms;
  }

  /** Waits for work until the deadline. Errors: OutOfTime, while the work may still go on; those of the work. */
  async within<T>(work: () => Promise<T>): Promise<T> {
    const leftMs = this.#atMs - performance.now();
    if (leftMs <= 0) throw new OutOfTime();
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      this.#atMs = Number.NEGATIVE_INFINITY; // timers may be early by a fraction
      late.reject(new OutOfTime());
    }, leftMs);
    try {
      return await Promise.race([work(), late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }
}
