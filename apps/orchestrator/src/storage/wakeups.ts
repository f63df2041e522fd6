import type { ReplicaNotifier } from "@millwright/events";

/** Wake-up topics. Each is announced through `Sql.announce`, so subscribers are notified only after the commit. */
export const topics = {
  /** Executions were queued, or capacity or workers became free. */
  work: "work",
  /** Events were appended to the run. */
  runEvents: (runUid: string) => `run:${runUid}`,
  /** Never announced: streams of directives poll together. */
  directives: "directives",
  /** The session has a new directive, or one of its executions must stop. */
  session: (sessionUid: string) => `session:${sessionUid}`,
};

const isTopic = (announced: string): boolean => announced === topics.work || /^(run|session):/.test(announced);

/**
 * Wakes waiting requests in this process and, through `replicas`, in the other replicas. Delivery is best effort: a
 * notification may be lost, so every waiter also polls at an interval.
 */
export class Wakeups {
  readonly #listeners = new Map<string, Set<() => void>>();
  readonly #replicas: ReplicaNotifier | undefined;
  #unsubscribe = (): void => {};

  constructor(replicas?: ReplicaNotifier) {
    this.#replicas = replicas;
  }

  /** Subscribes to the notifications of the other replicas. */
  start(): void {
    this.#unsubscribe = this.#replicas?.subscribe((topic) => this.#notifyHere(topic)) ?? this.#unsubscribe;
  }

  stop(): void {
    this.#unsubscribe();
  }

  /** Notifies subscribers of the wake-up topics that a commit announced, here and at the other replicas. */
  notify(announced: ReadonlySet<string>): void {
    const notified = [...announced].filter(isTopic);
    for (const topic of notified) this.#notifyHere(topic);
    this.#replicas?.notify(notified);
  }

  #notifyHere(topic: string): void {
    for (const listener of [...(this.#listeners.get(topic) ?? [])]) listener();
  }

  /** Calls `listener` at each notification of `topic`. Returns a function that unsubscribes. */
  subscribe(topic: string, listener: () => void): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set();
    this.#listeners.set(topic, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(topic) === listeners) this.#listeners.delete(topic);
    };
  }

  /**
   * Resolves at the next notification of `topic`, after `timeoutMs`, or when `signal` is aborted. Never rejects. The
   * first wait that times out ends all waits for the topic in this process, so that those who poll share their reads.
   */
  wait(topic: string, timeoutMs: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        unsubscribe();
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(() => this.#notifyHere(topic), timeoutMs);
      const unsubscribe = this.subscribe(topic, end);
      signal?.addEventListener("abort", end);
    });
  }
}
