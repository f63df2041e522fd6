type UnderWay<T> = { readonly ended: Promise<T | undefined>; next?: Promise<T> };

/**
 * Runs at most one read per key at a time. Callers that arrive during a read share the next one, which starts after
 * they have arrived. So no caller receives data from before its call.
 */
export class SharedReads<T> {
  readonly #underWay = new Map<string, UnderWay<T>>();

  /**
   * Reads a key. `read` receives the result of the preceding read if the call waited for one and it succeeded. Errors:
   * those of `read`.
   */
  read(key: string, read: (before: T | undefined) => Promise<T>): Promise<T> {
    const now = this.#underWay.get(key);
    return now
      ? (now.next ??= now.ended.then((before) => this.#begin(key, read, before)))
      : this.#begin(key, read, undefined);
  }

  #begin(key: string, read: (before: T | undefined) => Promise<T>, before: T | undefined): Promise<T> {
    const answer = read(before);
    const now: UnderWay<T> = { ended: answer.catch(() => undefined) };
    this.#underWay.set(key, now);
    void this.#forget(key, now);
    return answer;
  }

  async #forget(key: string, now: UnderWay<T>): Promise<void> {
    await now.ended;
    if (!now.next) this.#underWay.delete(key);
  }
}
