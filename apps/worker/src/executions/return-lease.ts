import type { Logger } from "@millwright/telemetry";
import type { WorkerClient } from "../protocol/client.ts";
import type { LeaseRef } from "../protocol/offer.ts";
import { retrying, type RetryDeps } from "../protocol/retrying.ts";
import type { EventStream } from "../spool/event-stream.ts";
import type { Masker } from "../spool/masker.ts";
import { unlessAborted } from "../time/timers.ts";
import type { LeaseReturn } from "./execution-outcome.ts";

export type ReturnLeaseDeps = RetryDeps & {
  readonly client: Pick<WorkerClient, "returnLeases">;
  readonly lease: LeaseRef;
  readonly events: EventStream;
  readonly masker: Masker;
  readonly heartbeatNow: () => Promise<boolean>;
  readonly log: Logger;
};

/**
 * Returns one lease after its last events, so that the run is queued immediately. `hasAcks`: whether acknowledged
 * directives must be reported first, evaluated after the last events. This is best effort: otherwise the lease expires. Returns whether the platform has
 * accepted it. Never rejects.
 */
export async function returnLease(
  deps: ReturnLeaseDeps,
  { reason, message, isFailure }: LeaseReturn,
  hasAcks: () => boolean,
  lost: AbortSignal,
): Promise<boolean> {
  const { client, timers, timings, lease, events, masker, log } = deps;
  const late = new AbortController();
  const cancelLimit = timers.after(timings().returnMs, () =>
    late.abort(new Error("The platform did not respond in time.")),
  );
  const signal = AbortSignal.any([lost, late.signal]);
  const returned = { ...lease, reason, message: masker.text(message), failure: isFailure };
  try {
    if (!events.isBroken) await unlessAborted(events.flushed(), signal);
    if (hasAcks()) await unlessAborted(deps.heartbeatNow(), signal);
    await retrying(deps, signal, () =>
      client.returnLeases({ leases: [returned] }, { timeoutMs: timings().callTimeoutMs, signal }),
    );
    log.info({ operation: "ReturnLeases", reason }, "execution returned");
    return true;
  } catch (error) {
    log.warn({ operation: "ReturnLeases", reason, error }, "the lease could not be returned; it expires by itself");
    return false;
  } finally {
    cancelLimit();
  }
}
