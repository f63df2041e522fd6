import type { worker } from "@millwright/contracts";
import type { ExecutionDirectives } from "../context/execution-context.ts";

type Handlers = {
  interrupt?: (turnId: string) => void | Promise<void>;
  followup?: (message: worker.InputMessage, seq: bigint) => void;
  endIdle?: () => void;
};

export type DirectiveQueueDeps = {
  readonly onCancel: (reason: string) => void;
  /** Called if a handler failed. The directive counts as handled. */
  readonly onError: (error: unknown) => void;
};

/**
 * The directives of one attempt. The stream and the heartbeats together deliver each directive at least once; each of
 * them may repeat, reorder or omit some. Each directive is handled once, in order of `seq`. `ackedSeq` covers only a
 * prefix of handled directives, so after a crash directives are repeated, not lost.
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

  /**
   * Accepts a directive; a repeated one is ignored. Returns false if it was rejected because an earlier one is missing.
   */
  deliver(directive: worker.Directive): boolean {
    if (directive.seq <= this.#lastSeq) return true;
    if (directive.previousSeq > this.#lastSeq) return false;
    this.#lastSeq = directive.seq;
    this.#open.add(directive.seq);
    // A cancel is handled immediately. All others are handled in order, even if an earlier one waits for its handler.
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
      return; // acknowledged by the code that handles it
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
      default: // a drain concerns the worker, and unknown directives of newer platforms are ignored
    }
  }
}
