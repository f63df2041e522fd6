import type { worker } from "@millwright/contracts";
import type { ExecutionDirectives } from "../context/execution-context.ts";

export type Followup = { readonly message: worker.InputMessage; readonly seq: bigint };

/** Why an idle execution continues or ends. */
export type Wakeup = "message" | "end";

/** Receives messages, interrupts and idle-end directives for a running execution. */
export class Inbox {
  readonly #followups: Followup[] = [];
  /** The current turn, otherwise the last one, or the first one if none has started. */
  #turn = { abort: new AbortController(), end: Promise.withResolvers<void>(), hasEnded: false };
  #wake: (wakeup: Wakeup) => void = () => {};

  constructor(directives: ExecutionDirectives) {
    directives.onFollowup((message, seq) => {
      this.#followups.push({ message, seq });
      this.#wake("message");
    });
    directives.onInterrupt(() => this.#interrupt());
    directives.onEndIdle(() => this.#wake("end"));
  }

  /**
   * Starts a turn, or continues one that has not ended. An interrupt aborts the signal, including one that arrived
   * before the first turn.
   */
  beginTurn(): AbortSignal {
    if (this.#turn.hasEnded)
      this.#turn = { abort: new AbortController(), end: Promise.withResolvers(), hasEnded: false };
    return this.#turn.abort.signal;
  }

  /** Marks the end of the turn as stored. Its interrupts are then acknowledged. */
  endTurn(): void {
    this.#turn.hasEnded = true;
    this.#turn.end.resolve();
  }

  /** Whether an interrupt of the current or next turn is pending. */
  get isInterrupted(): boolean {
    return !this.#turn.hasEnded && this.#turn.abort.signal.aborted;
  }

  /**
   * Aborts the turn. Resolves when the turn has ended; only then is the interrupt acknowledged, so that after the loss
   * of this worker the next one receives it. Between turns it has no effect.
   */
  #interrupt(): Promise<void> | void {
    if (this.#turn.hasEnded) return;
    this.#turn.abort.abort(new Error("The turn was interrupted."));
    return this.#turn.end.promise;
  }

  get hasMessages(): boolean {
    return this.#followups.length > 0;
  }

  /** The oldest message that has not been delivered. */
  get next(): Followup | undefined {
    return this.#followups[0];
  }

  /** Removes a message. */
  drop(followup: Followup): void {
    this.#followups.splice(this.#followups.indexOf(followup), 1);
  }

  /** Waits for a message, the directive to end, or the timeout. Rejects with the abort reason of `signal`. */
  idle(timeoutMs: number, signal: AbortSignal): Promise<Wakeup> {
    if (this.hasMessages) return Promise.resolve("message");
    return new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        this.#wake = () => {};
        act();
      };
      const onAbort = () => settle(() => reject(signal.reason as Error));
      const timer = setTimeout(() => settle(() => resolve("end")), timeoutMs);
      this.#wake = (wakeup) => settle(() => resolve(wakeup));
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) onAbort();
    });
  }
}
