export type ModelCallCount = { readonly provider: string; readonly outcome: string; readonly count: number };

/** Counts model calls until a heartbeat has reported them. Workers have no metrics port. */
export class ModelCallCounts {
  #counts = new Map<string, ModelCallCount>();

  add(provider: string, outcome: string, count = 1): void {
    const key = `${provider} ${outcome}`;
    this.#counts.set(key, { provider, outcome, count: (this.#counts.get(key)?.count ?? 0) + count });
  }

  /** Returns all counts and resets them. */
  take(): readonly ModelCallCount[] {
    const taken = [...this.#counts.values()];
    this.#counts = new Map();
    return taken;
  }

  /** Adds back counts that were not reported. */
  putBack(taken: readonly ModelCallCount[]): void {
    for (const { provider, outcome, count } of taken) this.add(provider, outcome, count);
  }
}
