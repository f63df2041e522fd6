import type { WatchedLease } from "../leases/lease-renewer.ts";
import { retryDelayMs } from "../protocol/retrying.ts";
import type { Machine, Order } from "./backend.ts";
import { DispatchedExecution, type DispatchedExecutionDeps } from "./dispatched-execution.ts";

export type DispatcherDeps = DispatchedExecutionDeps & { readonly slots: number };

/** The machines of one worker. Each machine uses one slot from its request until its attempt has ended. */
export class Dispatcher {
  readonly #deps: DispatcherDeps;
  readonly #watched = new Map<string, DispatchedExecution>();
  #waiting: (() => void)[] = [];
  #failures = 0;

  constructor(deps: DispatcherDeps) {
    this.#deps = deps;
  }

  all(): readonly WatchedLease[] {
    return [...this.#watched.values()];
  }

  freeSlots(): number {
    return Math.max(0, this.#deps.slots - this.#watched.size);
  }

  /** Resolves when the next slot becomes free or a machine has accepted its execution. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Resolves when every machine has accepted its execution or has ended. */
  async settled(): Promise<void> {
    while ([...this.#watched.values()].some(({ isTaken }) => !isTaken)) await this.changed();
  }

  /** Returns the leases that no machine has accepted, and ends those machines. */
  async returnLeases(): Promise<void> {
    await Promise.all([...this.#watched.values()].map((watched) => watched.returnLease()));
  }

  /** Resumes watching the machines that were dispatched before a restart. Throws the backend's errors. */
  async reattach(): Promise<void> {
    for (const machine of await this.#deps.backend.known()) {
      this.#deps.log.info(
        { operation: "reattach", executionId: String(machine.executionId), attempt: machine.attempt },
        "reattached to a machine",
      );
      this.#watched.set(keyOf(machine), this.#watch(machine));
    }
  }

  /** Requests a machine for each execution that has none. */
  begin(orders: readonly Order[]): void {
    for (const order of orders) {
      if (this.#watched.has(keyOf(order))) continue;
      const { executionId, attempt, runUid } = order;
      const watched = this.#watch({ executionId, attempt, runUid, startedMs: this.#deps.clock.now().getTime() });
      this.#watched.set(keyOf(order), watched);
      void watched.start(order);
    }
  }

  /** Checks every machine, because the backend reported a change. */
  checkAll(): void {
    for (const watched of this.#watched.values()) void watched.check();
  }

  #watch(machine: Machine): DispatchedExecution {
    return new DispatchedExecution(this.#deps, machine, {
      taken: () => {
        this.#failures = 0;
        this.#wake();
      },
      failureDelayMs: () => retryDelayMs(this.#deps.timings(), this.#failures++),
      ended: () => {
        this.#watched.delete(keyOf(machine));
        this.#wake();
      },
    });
  }

  #wake(): void {
    for (const resume of this.#waiting.splice(0)) resume();
  }
}

const keyOf = ({ executionId, attempt }: { executionId: bigint; attempt: number }): string =>
  `${executionId}-${attempt}`;
