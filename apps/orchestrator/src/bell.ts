import type { ReplicaNotifier } from "@millwright/events";

/** Topics that are rung; each is also announced through `Sql.announce`, so it rings after the commit. */
export const topics = {
  /** Executions were queued, or capacity or workers became free. */
  work: "work",
  /** Events were added to a run. */
  runEvents: (runUid: string) => `run:${runUid}`,
  /** Something a worker session must be told. */
  session: (sessionUid: string) => `session:${sessionUid}`,
};

const isTopic = (news: string): boolean => news === topics.work || /^(run|session):/.test(news);

/**
 * Wakes those who wait, in this process and through `replicas` in the others. Carries no promise: a ring may be lost, so
 * whoever waits also looks again by itself after a while.
 */
export class Bell {
  readonly #listeners = new Map<string, Set<() => void>>();
  readonly #replicas: ReplicaNotifier | undefined;
  #unlisten = (): void => {};

  constructor(replicas?: ReplicaNotifier) {
    this.#replicas = replicas;
  }

  /** Hears the other replicas from now on. */
  start(): void {
    this.#unlisten = this.#replicas?.subscribe((topic) => this.#ringHere(topic)) ?? this.#unlisten;
  }

  stop(): void {
    this.#unlisten();
  }

  /** Rings what of a commit's news is a topic. */
  ring(news: ReadonlySet<string>): void {
    const rung = [...news].filter(isTopic);
    for (const topic of rung) this.#ringHere(topic);
    this.#replicas?.notify(rung);
  }

  #ringHere(topic: string): void {
    for (const listener of [...(this.#listeners.get(topic) ?? [])]) listener();
  }

  /** Calls `listener` at each ring. Returns how to stop. */
  listen(topic: string, listener: () => void): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set();
    this.#listeners.set(topic, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(topic) === listeners) this.#listeners.delete(topic);
    };
  }

  /** Resolves at the next ring, after `timeoutMs`, or when `signal` is aborted. Never rejects. */
  wait(topic: string, timeoutMs: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        unlisten();
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, timeoutMs);
      const unlisten = this.listen(topic, end);
      signal?.addEventListener("abort", end);
    });
  }
}
