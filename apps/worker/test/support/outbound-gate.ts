import type { OutboundGate } from "../../src/egress/outbound-gate.ts";
import { OutboundGateClosed } from "../../src/egress/outbound-gate.ts";

/** An OutboundGate that the test controls. */
export class TestGate implements OutboundGate {
  #isOpen = true;
  #ended: Error | undefined;
  #waiting: { resolve: () => void; reject: (error: Error) => void }[] = [];

  /** The number of callers that wait for the gate to open. */
  get waiting(): number {
    return this.#waiting.length;
  }

  close(): void {
    this.#isOpen = false;
  }

  open(): void {
    this.#isOpen = true;
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  /** Ends the gate as at the end of an execution: all waiting callers are rejected. */
  end(reason: Error): void {
    this.#ended = reason;
    for (const { reject } of this.#waiting.splice(0)) reject(reason);
  }

  assertOpen(): void {
    if (this.#ended) throw this.#ended;
    if (!this.#isOpen) throw new OutboundGateClosed();
  }

  async whenOpen(): Promise<void> {
    if (this.#ended) throw this.#ended;
    if (!this.#isOpen) await new Promise<void>((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }
}
