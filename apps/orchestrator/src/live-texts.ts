import type { ReplicaBroadcast } from "@millwright/events";

/** A piece of what a model is just saying. `offset`: where in the answer's text it begins, in UTF-16 units. */
export type LiveText = {
  readonly runUid: string;
  readonly executionId: number;
  readonly attempt: number;
  readonly stepId: string;
  readonly offset: number;
  readonly text: string;
};

/**
 * What models are saying, told to whoever watches their runs now, at this replica and the others. Nothing of it is stored: the event of the step has the whole
 * text when it is said, and pieces may be lost.
 */
export class LiveTexts {
  readonly #listeners = new Map<string, Set<(text: LiveText) => void>>();
  readonly #replicas: ReplicaBroadcast | undefined;
  #unlisten = (): void => {};

  constructor(replicas?: ReplicaBroadcast) {
    this.#replicas = replicas;
  }

  /** Hears the other replicas from now on. */
  start(): void {
    this.#unlisten =
      this.#replicas?.subscribe((message) => isLiveText(message) && this.#tellHere(message)) ?? this.#unlisten;
  }

  stop(): void {
    this.#unlisten();
  }

  tell(text: LiveText): void {
    this.#tellHere(text);
    this.#replicas?.send(text);
  }

  /** Calls `listener` for each piece of a run. Returns how to stop. */
  listen(runUid: string, listener: (text: LiveText) => void): () => void {
    const listeners = this.#listeners.get(runUid) ?? new Set();
    this.#listeners.set(runUid, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(runUid) === listeners) this.#listeners.delete(runUid);
    };
  }

  #tellHere(text: LiveText): void {
    for (const listener of [...(this.#listeners.get(text.runUid) ?? [])]) listener(text);
  }
}

function isLiveText(message: unknown): message is LiveText {
  const { runUid, executionId, attempt, stepId, offset, text } = (message ?? {}) as Partial<
    Record<keyof LiveText, unknown>
  >;
  return (
    [runUid, stepId, text].every((one) => typeof one === "string") &&
    [executionId, attempt, offset].every((one) => Number.isSafeInteger(one))
  );
}
