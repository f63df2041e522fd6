import type { worker } from "@millwright/contracts";
import type { ExecutionDirectives } from "./execution-context.ts";

type Handlers = {
  interrupt?: (turnId: string) => void | Promise<void>;
  followup?: (message: worker.InputMessage, seq: bigint) => void;
  endIdle?: () => void;
};

export type DirectiveQueueDeps = {
  readonly onCancel: (reason: string) => void;
  /** A handler failed; the directive counts as handled. */
  readonly onError: (error: unknown) => void;
};

/**
 * The directives of one attempt. The stream and the heartbeats deliver each at least once; either may repeat, reorder or omit some. Each
 * is handled once, in order of `seq`. `ackedSeq` covers only directives that are all handled, so a crash repeats rather than loses.
 */
export class DirectiveQueue implements ExecutionDirectives {
  readonly #deps: DirectiveQueueDeps;
  readonly #handlers: Handlers = {};
  readonly #open = new Set<bigint>();
  #lastSeq = 0n;
  #parked: worker.Directive[] = [];

  constructor(deps: DirectiveQueueDeps) {
    this.#deps = deps;
  }

  get ackedSeq(): bigint {
    let acked = this.#lastSeq;
    for (const seq of this.#open) if (seq <= acked) acked = seq - 1n;
    return acked;
  }

  /** Takes a directive; a repeated one is dropped. Returns false if it was refused because one before it is missing. */
  deliver(directive: worker.Directive): boolean {
    if (directive.seq <= this.#lastSeq) return true;
    if (directive.previousSeq > this.#lastSeq) return false;
    this.#lastSeq = directive.seq;
    this.#open.add(directive.seq);
    // Cancel overtakes everything; the others are handled in order, also behind one that waits for its handler.
    if (directive.directive.case !== "cancel" && (this.#parked.length > 0 || !this.#canHandle(directive)))
      this.#parked.push(directive);
    else this.#handle(directive);
    return true;
  }

  onInterrupt(handle: NonNullable<Handlers["interrupt"]>): void {
    this.#handlers.interrupt = handle;
    this.#handleParked();
  }

  onFollowup(handle: NonNullable<Handlers["followup"]>): void {
    this.#handlers.followup = handle;
    this.#handleParked();
  }

  onEndIdle(handle: NonNullable<Handlers["endIdle"]>): void {
    this.#handlers.endIdle = handle;
    this.#handleParked();
  }

  ack(seq: bigint): void {
    this.#open.delete(seq);
  }

  #canHandle({ directive }: worker.Directive): boolean {
    switch (directive.case) {
      case "interrupt":
        return this.#handlers.interrupt !== undefined;
      case "followup":
        return this.#handlers.followup !== undefined;
      case "endIdle":
        return this.#handlers.endIdle !== undefined;
      default:
        return true;
    }
  }

  #handleParked(): void {
    while (this.#parked[0] && this.#canHandle(this.#parked[0])) this.#handle(this.#parked.shift() as worker.Directive);
  }

  #handle({ seq, directive }: worker.Directive): void {
    if (directive.case === "followup" && directive.value.message) {
      this.#handlers.followup?.(directive.value.message, seq);
      return; // acknowledged by the handler's side
    }
    void this.#run(directive).then(
      () => this.ack(seq),
      (error: unknown) => {
        this.ack(seq);
        this.#deps.onError(error);
      },
    );
  }

  async #run(directive: worker.Directive["directive"]): Promise<void> {
    switch (directive.case) {
      case "cancel":
        return this.#deps.onCancel(directive.value.reason);
      case "interrupt":
        return this.#handlers.interrupt?.(directive.value.turnId);
      case "endIdle":
        return this.#handlers.endIdle?.();
      default: // drain is the worker's, and what a newer platform may say is nobody's
    }
  }
}
