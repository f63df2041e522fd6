/** Reverts the writes of a failed transaction. */
export class Journal {
  #undo: (() => void)[] = [];

  note(undo: () => void): void {
    this.#undo.push(undo);
  }

  /** Runs `f`. If it throws, reverts everything it wrote. */
  async run<T>(f: () => Promise<T>): Promise<T> {
    this.#undo = [];
    try {
      return await f();
    } catch (error) {
      for (const undo of this.#undo.toReversed()) undo();
      throw error;
    }
  }
}

/** Rows by key. A row is replaced, never mutated, so that a journal can restore the previous one. */
export class Table<K, V extends object> {
  readonly #rows = new Map<K, V>();
  readonly #journal: Journal;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  get(key: K): V | undefined {
    return this.#rows.get(key);
  }

  all(): V[] {
    return [...this.#rows.values()];
  }

  entries(): [K, V][] {
    return [...this.#rows.entries()];
  }

  put(key: K, row: V): V {
    const before = this.#rows.get(key);
    this.#journal.note(() => (before ? this.#rows.set(key, before) : this.#rows.delete(key)));
    this.#rows.set(key, row);
    return row;
  }

  /** Changes some columns of an existing row. */
  patch(key: K, columns: Partial<V>): V {
    const row = this.#rows.get(key);
    if (!row) throw new Error("no such row");
    return this.put(key, { ...row, ...columns });
  }

  remove(key: K): void {
    const before = this.#rows.get(key);
    if (!before) return;
    this.#journal.note(() => this.#rows.set(key, before));
    this.#rows.delete(key);
  }
}
