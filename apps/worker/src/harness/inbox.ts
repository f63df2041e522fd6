import type { worker } from "@millwright/contracts";
import type { ExecutionDirectives } from "../executions/execution-context.ts";

export type Followup = { readonly message: worker.InputMessage; readonly seq: bigint };

/** Why an idle execution goes on or ends. */
export type Wakeup = "message" | "end";

/** What people send to a running execution: messages, interrupts, and the order to end an idle one. */
export class Inbox {
  readonly #followups: Followup[] = [];
  #turn = new AbortController();
  #wake: (wakeup: Wakeup) => void = () => {};

  constructor(directives: ExecutionDirectives) {
    directives.onFollowup((message, seq) => {
      this.#followups.push({ message, seq });
      this.#wake("message");
    });
    directives.onInterrupt(() => this.#turn.abort(new Error("The turn was interrupted."))); // with no turn running it changes nothing
    directives.onEndIdle(() => this.#wake("end"));
  }

  /** Begins a turn; the signal is aborted by an interrupt. */
  beginTurn(): AbortSignal {
    this.#turn = new AbortController();
    return this.#turn.signal;
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
