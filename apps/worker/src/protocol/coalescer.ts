import { DomainError } from "@millwright/errors";
import { platformError } from "./platform-error.ts";
import type { CancelTimer, Timers } from "../time/timers.ts";

/** How long a call may wait for further items, in milliseconds. */
const WINDOW_MS = 5;

export type CoalescerDeps<I, O> = {
  readonly timers: Timers;
  /** Sends the items in one call. Returns results in the same order, undefined where the platform returned none. */
  readonly sendAll: (items: I[]) => Promise<(O | undefined)[]>;
  readonly itemsMax: number;
};

type Waiting<I, O> = {
  readonly item: () => I;
  readonly resolve: (result: O) => void;
  readonly reject: (error: unknown) => void;
};

/**
 * Batches calls that are made within 5 ms. If a batch is rejected permanently, each item is sent separately, so that
 * one invalid item does not affect the others.
 */
export class Coalescer<I, O> {
  readonly #deps: CoalescerDeps<I, O>;
  #waiting: Waiting<I, O>[] = [];
  #cancelTimer: CancelTimer | undefined;

  constructor(deps: CoalescerDeps<I, O>) {
    this.#deps = deps;
  }

  /** Adds an item to a batch. `item` is evaluated only when the call is sent. Rejects with the errors of `sendAll`. */
  send(item: () => I): Promise<O> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (this.#waiting.length >= this.#deps.itemsMax) this.flush();
      else this.#cancelTimer ??= this.#deps.timers.after(WINDOW_MS, () => this.flush());
    });
  }

  /** Sends the pending batch immediately, because a caller waits for a result. */
  flush(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const group = this.#waiting;
    this.#waiting = [];
    if (group.length > 0) void this.#sendGroup(group);
  }

  async #sendGroup(group: Waiting<I, O>[]): Promise<void> {
    try {
      const results = await this.#deps.sendAll(group.map((waiting) => waiting.item()));
      group.forEach((waiting, index) => {
        const result = results[index];
        if (result === undefined) waiting.reject(incomplete());
        else waiting.resolve(result);
      });
    } catch (error) {
      if (group.length > 1 && !platformError(error).retryable)
        for (const single of group) void this.#sendGroup([single]);
      else for (const waiting of group) waiting.reject(error);
    }
  }
}

const incomplete = (): DomainError =>
  new DomainError({
    kind: "unavailable",
    reason: "answer_incomplete",
    message: "The platform returned fewer results than it received items.",
  });
