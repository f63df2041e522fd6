export type ModelCallCount = { readonly provider: string; readonly outcome: string; readonly count: number };

/** Calls of models until a heartbeat has told of them: workers have no port at which metrics could be asked for. */
export class ModelCallCounts {
  #counts = new Map<string, ModelCallCount>();

  add(provider: string, outcome: string, count = 1): void {
    const key = `${provider} ${outcome}`;
    this.#counts.set(key, { provider, outcome, count: (this.#counts.get(key)?.count ?? 0) + count });
  }

  /** Everything so far, which is forgotten here. */
  take(): readonly ModelCallCount[] {
    const taken = [...this.#counts.values()];
    this.#counts = new Map();
    return taken;
  }

  /** What was taken and not told. */
  putBack(taken: readonly ModelCallCount[]): void {
    for (const { provider, outcome, count } of taken) this.add(provider, outcome, count);
  }
}
