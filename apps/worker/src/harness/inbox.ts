import type { worker } from "@millwright/contracts";
import type { ExecutionDirectives } from "../executions/execution-context.ts";

export type Followup = { readonly message: worker.InputMessage; readonly seq: bigint };

/** Why an idle execution goes on or ends. */
export type Wakeup = "message" | "end";

/** What people send to a running execution: messages, interrupts, and the order to end an idle one. */
export class Inbox {
  readonly #followups: Followup[] = [];
  /** The present turn, the one that was last, or (before any) the one that comes first. */
  #turn = { abort: new AbortController(), end: Promise.withResolvers<void>(), isOver: false };
  #wake: (wakeup: Wakeup) => void = () => {};

  constructor(directives: ExecutionDirectives) {
    directives.onFollowup((message, seq) => {
      this.#followups.push({ message, seq });
      this.#wake("message");
    });
    directives.onInterrupt(() => this.#interrupt());
    directives.onEndIdle(() => this.#wake("end"));
  }

  /** Begins a turn, or goes on with one that has not ended; the signal is aborted by an interrupt, also by one that came before the first turn. */
  beginTurn(): AbortSignal {
    if (this.#turn.isOver) this.#turn = { abort: new AbortController(), end: Promise.withResolvers(), isOver: false };
    return this.#turn.abort.signal;
  }

  /** The end of the turn is stored: whoever goes on from there knows of it, and an interrupt of it is done. */
  endTurn(): void {
    this.#turn.isOver = true;
    this.#turn.end.resolve();
  }

  /** Somebody wants the turn to end that runs, or is about to. */
  get isInterrupted(): boolean {
    return !this.#turn.isOver && this.#turn.abort.signal.aborted;
  }

  /** Acknowledged when the turn has ended, so that a worker that is lost before leaves the interrupt to the next one. Between turns it changes nothing. */
  #interrupt(): Promise<void> | void {
    if (this.#turn.isOver) return;
    this.#turn.abort.abort(new Error("The turn was interrupted."));
    return this.#turn.end.promise;
  }

  get hasMessages(): boolean {
    return this.#followups.length > 0;
  }

  /** The oldest message that nobody has taken. */
  get next(): Followup | undefined {
    return this.#followups[0];
  }

  /** Takes a message. */
  drop(followup: Followup): void {
    this.#followups.splice(this.#followups.indexOf(followup), 1);
  }

  /** Waits for a message, the order to end, or the time limit. Rejects with the abort reason of `signal`. */
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
