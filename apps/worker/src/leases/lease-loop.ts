import type { CallOptions } from "@connectrpc/connect";
import type { Clock } from "@millwright/clock";
import type { Logger } from "@millwright/telemetry";
import { platformError } from "../protocol/platform-error.ts";
import type { WorkerClient } from "../protocol/client.ts";
import type { LeaseRef } from "../protocol/offer.ts";
import { retrying, retryDelayMs } from "../protocol/retrying.ts";
import type { Timings } from "../protocol/timings.ts";
import { pause, type Timers } from "../time/timers.ts";
import { momentOf, type Moment } from "../time/moment.ts";

export type LeaseLoopDeps = {
  readonly client: Pick<WorkerClient, "lease" | "decline">;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly timings: () => Timings;
  readonly log: Logger;
  readonly freeSlots: () => number;
  /** Resolves when a slot may have become free. */
  readonly slotFreed: () => Promise<void>;
  /** Returns whether there is disk space for another workspace. */
  readonly hasFreeDisk: () => Promise<boolean>;
  /**
   * Accepts offers; called again if a response was lost. `sent` is when the first request was sent. Returns the offers
   * that were no longer open.
   */
  readonly take: (leases: readonly LeaseRef[], sent: Moment, options: CallOptions) => Promise<readonly LeaseRef[]>;
};

/** Leases work while slots are free, until `signal` is aborted. */
export class LeaseLoop {
  readonly #deps: LeaseLoopDeps;
  #wake = new AbortController();

  constructor(deps: LeaseLoopDeps) {
    this.#deps = deps;
  }

  /** Ends a back-off early because work is available. */
  wake(): void {
    this.#wake.abort(new Error("Work is available."));
  }

  async run(signal: AbortSignal): Promise<void> {
    const ended = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    for (let failures = 0; !signal.aborted;) {
      if (this.#deps.freeSlots() === 0) {
        await Promise.race([this.#deps.slotFreed(), ended]);
        continue;
      }
      try {
        if (!(await this.#deps.hasFreeDisk())) {
          this.#deps.log.warn({ operation: "Lease", reason: "disk_full" }, "no work is leased while the disk is full");
        } else if (await this.#takeWork(signal)) {
          failures = 0;
          continue;
        }
      } catch (error) {
        if (signal.aborted) return;
        this.#deps.log.warn({ operation: "Lease", reason: platformError(error).reason }, "no work could be leased");
      }
      await this.#backOff(failures++, signal);
    }
  }

  /** Returns whether to poll again immediately: false if the platform returned no offers without having waited. */
  async #takeWork(signal: AbortSignal): Promise<boolean> {
    const { client, clock, freeSlots, timings } = this.#deps;
    const { leaseWaitMs, callTimeoutMs } = timings();
    const askedMs = clock.monotonicMs();
    const response = await client.lease(
      { freeSlots: freeSlots(), waitMs: leaseWaitMs },
      { timeoutMs: leaseWaitMs + callTimeoutMs, signal },
    );
    const leases = response.offers.map(({ executionId, attempt }) => ({ executionId, attempt }));
    // An offer that arrives after the drain began is returned immediately instead of expiring.
    const wanted = signal.aborted ? 0 : freeSlots();
    await this.#decline(leases.slice(wanted), signal.aborted ? "draining" : "no_free_slot");
    await this.#accept(leases.slice(0, wanted));
    return wanted > 0 && (leases.length > 0 || clock.monotonicMs() - askedMs > leaseWaitMs / 4);
  }

  /**
   * Accepts offers, even if a drain begins concurrently: an accepted lease whose response was lost would otherwise
   * block its run until it expires.
   */
  async #accept(leases: LeaseRef[]): Promise<void> {
    if (leases.length === 0) return;
    const { take, clock, timers, timings, log } = this.#deps;
    const offersOpen = new AbortController();
    const cancel = timers.after(timings().offerTtlMs, () => offersOpen.abort(new Error("The offers have expired.")));
    try {
      const sent = momentOf(clock); // the time of the first attempt, which may be the one that succeeded
      const lost = await retrying({ timers, timings }, offersOpen.signal, () =>
        take(leases, sent, { timeoutMs: timings().callTimeoutMs, signal: offersOpen.signal }),
      );
      for (const { executionId, attempt } of lost)
        log.info({ operation: "Accept", executionId: String(executionId), attempt }, "offer was no longer open");
    } finally {
      cancel();
    }
  }

  async #decline(leases: LeaseRef[], reason: string): Promise<void> {
    if (leases.length === 0) return;
    const { client, timings, log } = this.#deps;
    await client.decline({ leases, reason }, { timeoutMs: timings().callTimeoutMs }).catch((error: unknown) => {
      log.warn(
        { operation: "Decline", reason: platformError(error).reason },
        "offers could not be declined; they expire",
      );
    });
  }

  async #backOff(failures: number, signal: AbortSignal): Promise<void> {
    this.#wake = new AbortController();
    await pause(
      this.#deps.timers,
      retryDelayMs(this.#deps.timings(), failures),
      AbortSignal.any([signal, this.#wake.signal]),
    ).catch(() => {});
  }
}
