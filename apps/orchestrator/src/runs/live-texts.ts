import type { ReplicaBroadcast } from "@millwright/events";

/**
 * A text delta of a model's answer that is being generated. `offset`: where the delta starts in the text of the answer,
 * in UTF-16 units.
 */
export type LiveText = {
  readonly runUid: string;
  readonly executionId: number;
  readonly attempt: number;
  readonly stepId: string;
  readonly offset: number;
  readonly text: string;
};

/**
 * Publishes text deltas of models to the current watchers of their runs, at this replica and the others. Deltas are not
 * stored and may be lost; the event of the step contains the whole text once it is complete.
 */
export class LiveTexts {
  readonly #listeners = new Map<string, Set<(text: LiveText) => void>>();
  readonly #replicas: ReplicaBroadcast | undefined;
  #unsubscribe = (): void => {};

  constructor(replicas?: ReplicaBroadcast) {
    this.#replicas = replicas;
  }

  /** Subscribes to the text deltas of the other replicas. */
  start(): void {
    this.#unsubscribe =
      this.#replicas?.subscribe((message) => isLiveText(message) && this.#publishHere(message)) ?? this.#unsubscribe;
  }

  stop(): void {
    this.#unsubscribe();
  }

  publish(text: LiveText): void {
    this.#publishHere(text);
    this.#replicas?.send(text);
  }

  /** Calls `listener` for each text delta of a run. Returns a function that unsubscribes. */
  listen(runUid: string, listener: (text: LiveText) => void): () => void {
    const listeners = this.#listeners.get(runUid) ?? new Set();
    this.#listeners.set(runUid, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(runUid) === listeners) this.#listeners.delete(runUid);
    };
  }

  #publishHere(text: LiveText): void {
    for (const listener of [...(this.#listeners.get(text.runUid) ?? [])]) listener(text);
  }
}

function isLiveText(message: unknown): message is LiveText {
  const { runUid, executionId, attempt, stepId, offset, text } = (message ?? {}) as Partial<
    Record<keyof LiveText, unknown>
  >;
  return (
    [runUid, stepId, text].every((value) => typeof value === "string") &&
    [executionId, attempt, offset].every((value) => Number.isSafeInteger(value))
  );
}
