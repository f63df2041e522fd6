import type { Logger } from "@millwright/telemetry";
import type { ClaimedSlot } from "./domain/slot.ts";
import { DueLoop } from "./due-loop.ts";

export type SlotLoopDeps = {
  plan(
    limit: number,
    leaseMs: number,
  ): Promise<{ readonly count: number; readonly lease: string; readonly slots: readonly ClaimedSlot[] }>;
  claim(limit: number, leaseMs: number): Promise<{ readonly lease: string; readonly slots: readonly ClaimedSlot[] }>;
  waitMs(): Promise<number | undefined>;
  fire(lease: string, slots: readonly ClaimedSlot[]): Promise<void>;
  log: Logger;
  leaseMs: number;
};

/** Schedules planned, or slots claimed, in one transaction. */
const BATCH = 500;
/** Batches in flight: the next slots are planned while runs are being created. */
const BATCHES_IN_FLIGHT = 2;

/** The background work of the service: plans, claims and fires the slots of schedules that come due. */
export class SlotLoop {
  readonly #deps: SlotLoopDeps;
  readonly #loop: DueLoop;
  readonly #firing = new Set<Promise<void>>();

  constructor(deps: SlotLoopDeps) {
    this.#deps = deps;
    this.#loop = new DueLoop({
      processDue: () => this.#processDue(),
      waitMs: () => deps.waitMs(),
      onError: (error) => deps.log.warn({ error }, "planning slots failed; retrying"),
    });
  }

  start(): void {
    this.#loop.start();
  }

  wake(): void {
    this.#loop.wake();
  }

  /** Stops the loop after the batches in flight have ended. */
  async stop(): Promise<void> {
    await this.#loop.stop();
    await Promise.all(this.#firing);
  }

  /**
   * Processes everything that is due now, for tests that control the time. Returns the number of schedules and slots.
   */
  async settleNow(): Promise<number> {
    let count = 0;
    for (;;) {
      const processed = await this.#processDue();
      await Promise.all(this.#firing);
      if (processed === 0) return count;
      count += processed;
    }
  }

  async #processDue(): Promise<number> {
    const deps = this.#deps;
    const planned = await deps.plan(BATCH, deps.leaseMs);
    if (planned.slots.length > 0) await this.#fire(planned.lease, planned.slots);
    if (planned.count === BATCH) return planned.count; // there may be more
    const claimed = await deps.claim(BATCH, deps.leaseMs);
    if (claimed.slots.length > 0) await this.#fire(claimed.lease, claimed.slots);
    return planned.count + claimed.slots.length;
  }

  /** Resolves when fewer than BATCHES_IN_FLIGHT batches are in flight. */
  async #fire(lease: string, slots: readonly ClaimedSlot[]): Promise<void> {
    const firing: Promise<void> = this.#deps
      .fire(lease, slots)
      .catch((error: unknown) =>
        this.#deps.log.warn({ error }, "deciding slots failed; they are decided again when their lease ends"),
      )
      .finally(() => this.#firing.delete(firing));
    this.#firing.add(firing);
    if (this.#firing.size >= BATCHES_IN_FLIGHT) await Promise.race(this.#firing);
  }
}
