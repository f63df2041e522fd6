type ActiveRead<T> = { readonly ended: Promise<T | undefined>; next?: Promise<T> };

/**
 * Runs at most one read per key at a time. Callers that arrive during a read share the next one, which starts after
 * they have arrived. So no caller receives data from before its call.
 */
export class SharedReads<T> {
  readonly #active = new Map<string, ActiveRead<T>>();

  /**
   * Reads a key. `read` receives the result of the preceding read if the call waited for one and it succeeded. Errors:
   * those of `read`.
   */
  read(key: string, read: (before: T | undefined) => Promise<T>): Promise<T> {
    const active = this.#active.get(key);
    return active
      ? (active.next ??= active.ended.then((before) => this.#begin(key, read, before)))
      : this.#begin(key, read, undefined);
  }

  #begin(key: string, read: (before: T | undefined) => Promise<T>, before: T | undefined): Promise<T> {
    const result = read(before);
    const active: ActiveRead<T> = { ended: result.catch(() => undefined) };
    this.#active.set(key, active);
    void this.#forget(key, active);
    return result;
  }

  async #forget(key: string, active: ActiveRead<T>): Promise<void> {
    await active.ended;
    if (!active.next) this.#active.delete(key);
  }
}

/** Returns a function that reads as `read` does; calls with equal arguments share reads as in `SharedReads`. */
export function sharedRead<A extends readonly unknown[], T>(
  read: (...args: A) => Promise<T>,
): (...args: A) => Promise<T> {
  const reads = new SharedReads<T>();
  return (...args) => reads.read(JSON.stringify(args), () => read(...args));
}
