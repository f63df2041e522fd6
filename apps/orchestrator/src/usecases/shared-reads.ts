type UnderWay<T> = { readonly ended: Promise<T | undefined>; next?: Promise<T> };

/**
 * One read at a time of each thing. Whoever asks while one is under way shares the next one with all who do: it begins after they asked, so that nobody is given
 * what was there before.
 */
export class SharedReads<T> {
  readonly #underWay = new Map<string, UnderWay<T>>();

  /** `read` is told what the read before it has found, if one was waited for and did not fail. Errors: those of `read`. */
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
