import { BackgroundLoop } from "@millwright/database";
import type { Logger } from "@millwright/telemetry";
import type { ClaimedSlot } from "./domain/slot.ts";

export type SlotLoopDeps = {
  plan(limit: number, leaseMs: number): Promise<{ readonly count: number; readonly lease: string; readonly slots: readonly ClaimedSlot[] }>;
  claim(limit: number, leaseMs: number): Promise<{ readonly lease: string; readonly slots: readonly ClaimedSlot[] }>;
  waitMs(): Promise<number | undefined>;
  fire(lease: string, slots: readonly ClaimedSlot[]): Promise<void>;
  log: Logger;
  leaseMs: number;
};

/** Schedules, or slots, taken at once. */
const BATCH = 500;
/** Of these under way at once: while runs are being made, the next slots are planned. */
const BATCHES_AT_ONCE = 3;
/** How long a schedule that another replica has changed may stay unnoticed. */
const POLL_MS = 1_000;

/** How soon what is due and at another's hands is looked at again. */
const BLOCKED_MS = 100;

/** What the service does by itself: when a schedule comes due, its slots are planned, claimed and fired. */
export class SlotLoop {
  readonly #deps: SlotLoopDeps;
  readonly #loop: BackgroundLoop;
  readonly #firing = new Set<Promise<void>>();
  #alarm: NodeJS.Timeout | undefined;

  constructor(deps: SlotLoopDeps) {
    this.#deps = deps;
    this.#loop = new BackgroundLoop({ everyMs: POLL_MS, step: () => this.#step(), onError: (error) => deps.log.warn({ error }, "slots were not planned; it is tried again") });
  }

  start(): void {
    this.#loop.start();
  }

  ring(): void {
    this.#loop.ring();
  }

  /** Lets what has begun end. */
  async stop(): Promise<void> {
    clearTimeout(this.#alarm);
    await this.#loop.stop();
    clearTimeout(this.#alarm);
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

  async #step(): Promise<"again" | "idle"> {
    if ((await this.#take()) > 0) return "again";
    const waitMs = await this.#deps.waitMs();
    clearTimeout(this.#alarm);
    // What is due and could not be taken waits for another slot of its schedule, or is at another replica.
    if (waitMs !== undefined && waitMs < POLL_MS) this.#alarm = setTimeout(() => this.#loop.ring(), waitMs > 0 ? waitMs + 1 : BLOCKED_MS);
    return "idle";
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
      .catch((error: unknown) => this.#deps.log.warn({ error }, "slots were not settled; they are decided again when their lease ends"))
      .finally(() => this.#firing.delete(firing));
    this.#firing.add(firing);
    if (this.#firing.size >= BATCHES_AT_ONCE) await Promise.race(this.#firing);
  }
}
