import { DomainError } from "@millwright/errors";

/**
 * The gate for external effects. It is closed while the lease is not known to be valid, which is evaluated by both
 * clocks at the time of use.
 */
export type OutboundGate = {
  /** Throws `OutboundGateClosed` (or `LeaseLost`). To be called directly before an external effect. */
  assertOpen(): void;
  /** Waits until the lease is renewed. Rejects with the abort reason of `signal`. */
  whenOpen(): Promise<void>;
};

/** The lease was not renewed for too long: no external effect may start until it is renewed. */
export class OutboundGateClosed extends DomainError {
  constructor() {
    super({
      kind: "unavailable",
      reason: "outbound_gate_closed",
      message: "The lease was not renewed in time; outside effects are suspended.",
    });
    this.name = "OutboundGateClosed";
  }
}

/** Whether a lease is known to be valid, and the notification that it is again. */
export type LeaseValidity = {
  readonly isOpen: () => boolean;
  /** Calls `resume` once when the lease is valid again. Returns a function that unregisters it. */
  readonly onReopened: (resume: () => void) => () => void;
};

/** Returns the outbound gate of one execution. It is open while the lease is known to be valid. */
export function outboundGateOf(lease: LeaseValidity, signal: AbortSignal): OutboundGate {
  return {
    assertOpen() {
      signal.throwIfAborted();
      if (!lease.isOpen()) throw new OutboundGateClosed();
    },
    async whenOpen() {
      signal.throwIfAborted();
      while (!lease.isOpen()) {
        await new Promise<void>((resolve, reject) => {
          const forget = lease.onReopened(() => {
            signal.removeEventListener("abort", abort);
            resolve();
          });
          function abort(): void {
            forget();
            reject(signal.reason as Error);
          }
          signal.addEventListener("abort", abort, { once: true });
        });
      }
    },
  };
}
