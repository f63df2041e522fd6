import type { OutboundGate } from "../executions/execution-context.ts";
import { OutboundGateClosed } from "../executions/execution-errors.ts";
import type { LeaseClock } from "./lease-clock.ts";

/** Returns the outbound gate of one execution. It is open while the lease is known to be valid. */
export function outboundGateOf(lease: LeaseClock, signal: AbortSignal): OutboundGate {
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
