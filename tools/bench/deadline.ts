/** Thrown when the deadline has passed. */
export class OutOfTime extends Error {}

/** The time limit of all measurements. */
export class Deadline {
  #atMs: number;

  constructor(ms: number) {
    this.#atMs = performance.now() + ms;
  }

  /**
   * Waits for work until the deadline. Throws OutOfTime, in which case the work may still be running, and the errors of the
   * work.
   */
  async within<T>(work: () => Promise<T>): Promise<T> {
    const leftMs = this.#atMs - performance.now();
    if (leftMs <= 0) throw new OutOfTime();
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      this.#atMs = Number.NEGATIVE_INFINITY; // timers can fire a fraction of a millisecond early
      late.reject(new OutOfTime());
    }, leftMs);
    try {
      return await Promise.race([work(), late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }
}
