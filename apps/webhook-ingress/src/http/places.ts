/** So many at once; those that come later wait in line. */
export class Places {
  #free: number;
  readonly #line: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Whether a place was got in time; whoever got one gives it back. */
  take(timeoutMs: number): Promise<boolean> {
    if (this.#free > 0) {
      this.#free -= 1;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const enter = (): void => {
        clearTimeout(timer);
        resolve(true);
      };
      const timer = setTimeout(() => {
        this.#line.splice(this.#line.indexOf(enter), 1);
        resolve(false);
      }, timeoutMs);
      this.#line.push(enter);
    });
  }

  give(): void {
    const next = this.#line.shift();
    if (next) next();
    else this.#free += 1;
  }
}
