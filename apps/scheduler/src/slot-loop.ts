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

/** Schedules, or slots, taken at once. */
const BATCH = 500;
/** Of these under way at once: while runs are being made, the next slots are planned. */
const BATCHES_AT_ONCE = 2;

/** What the service does by itself: when a schedule comes due, its slots are planned, claimed and fired. */
export class SlotLoop {
  readonly #deps: SlotLoopDeps;
  readonly #loop: DueLoop;
  readonly #firing = new Set<Promise<void>>();

  constructor(deps: SlotLoopDeps) {
    this.#deps = deps;
    this.#loop = new DueLoop({
      take: () => this.#take(),
      waitMs: () => deps.waitMs(),
      onError: (error) => deps.log.warn({ error }, "slots were not planned; it is tried again"),
    });
  }

  start(): void {
    this.#loop.start();
  }

  wake(): void {
    this.#loop.wake();
  }

  /** Lets what has begun end. */
  async stop(): Promise<void> {
    await this.#loop.stop();
    await Promise.all(this.#firing);
  }

  /** Does all there is to do now; for tests that drive the time. Answers how many schedules and slots it was. */
  async settleNow(): Promise<number> {
    let count = 0;
    for (;;) {
      const found = await this.#take();
      await Promise.all(this.#firing);
      if (found === 0) return count;
      count += found;
    }
  }

  async #take(): Promise<number> {
    const deps = this.#deps;
    const planned = await deps.plan(BATCH, deps.leaseMs);
    if (planned.slots.length > 0) await this.#fire(planned.lease, planned.slots);
    if (planned.count === BATCH) return planned.count; // there may be more
    const claimed = await deps.claim(BATCH, deps.leaseMs);
    if (claimed.slots.length > 0) await this.#fire(claimed.lease, claimed.slots);
    return planned.count + claimed.slots.length;
  }

  /** Answers when it has begun, or when one of as many as may be under way has ended. */
  async #fire(lease: string, slots: readonly ClaimedSlot[]): Promise<void> {
    const firing: Promise<void> = this.#deps
      .fire(lease, slots)
      .catch((error: unknown) =>
        this.#deps.log.warn({ error }, "slots were not settled; they are decided again when their lease ends"),
      )
      .finally(() => this.#firing.delete(firing));
    this.#firing.add(firing);
    if (this.#firing.size >= BATCHES_AT_ONCE) await Promise.race(this.#firing);
  }
}
