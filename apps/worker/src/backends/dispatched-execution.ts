import type { worker } from "@millwright/contracts";
import type { Clock } from "@millwright/clock";
import { bestEffort } from "@millwright/errors";
import type { Logger } from "@millwright/telemetry";
import type { WatchedLease } from "../leases/lease-renewer.ts";
import type { WorkerClient } from "../protocol/client.ts";
import { retrying, retryDelayMs } from "../protocol/retrying.ts";
import type { Timings } from "../protocol/timings.ts";
import { pause, type Timers } from "../time/timers.ts";
import { MachineFailed, type Backend, type EndReason, type Machine, type Order } from "./backend.ts";

export type DispatchedExecutionDeps = {
  readonly backend: Backend;
  readonly client: Pick<WorkerClient, "failDispatch" | "complete" | "returnLeases">;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly timings: () => Timings;
  readonly log: Logger;
  /** How long a machine may take to accept its execution before the worker abandons it. */
  readonly startTimeoutMs: number;
  /** Aborted when this process ends. */
  readonly signal: AbortSignal;
};

/** Receives the progress of a dispatched execution. */
export type DispatchListener = {
  taken(): void;
  failureDelayMs(): number;
  ended(): void;
};

/** One dispatched execution. Its state follows the platform's status of the lease. */
export class DispatchedExecution implements WatchedLease {
  readonly executionId: bigint;
  readonly attempt: number;
  isTaken = false;
  readonly #deps: DispatchedExecutionDeps;
  readonly #machine: Machine;
  readonly #listener: DispatchListener;
  readonly #log: Logger;
  /** The pending request for the machine; settled when the backend has responded. */
  #ordered: Promise<void> = Promise.resolve();
  #isStarting = false;
  #isStopping = false;
  #isChecking = false;
  #isFailing = false;
  /** The machine is being ended: further status updates are ignored. */
  #isEnding = false;

  constructor(deps: DispatchedExecutionDeps, machine: Machine, listener: DispatchListener) {
    this.executionId = machine.executionId;
    this.attempt = machine.attempt;
    this.#deps = deps;
    this.#machine = machine;
    this.#listener = listener;
    this.#log = deps.log.child({
      executionId: String(machine.executionId),
      attempt: machine.attempt,
      runUid: machine.runUid,
    });
  }

  async start(order: Order): Promise<void> {
    this.#isStarting = true;
    const asked = this.#deps.backend.start(order, this.#machine.startedMs);
    this.#ordered = asked.catch(() => {});
    const fault = await asked.then(() => undefined, failureOf);
    this.#isStarting = false;
    if (fault) return this.#fail(fault);
    this.#log.info({ operation: "dispatch" }, "dispatched");
  }

  onStatus({ status, stopping }: Pick<worker.WatchedStatus, "status" | "stopping">): void {
    if (this.#isEnding) return;
    if (stopping) this.#isStopping = true;
    switch (status) {
      case "WAITING":
        return stopping ? void this.#cancel() : void this.check();
      case "TAKEN":
        if (!this.isTaken) {
          this.isTaken = true;
          this.#log.info({ operation: "dispatch" }, "accepted by its machine");
          this.#listener.taken();
        }
        return void this.check();
      case "ENDED":
        // The platform may only have stopped waiting for a cancelled execution, without proof that the machine has
        // ended. The machine is therefore ended, not only forgotten.
        return void (this.#isStopping
          ? this.#end("cancelled")
          : this.#finish(() => this.#deps.backend.forget(this.#machine)));
      case "LOST":
        return void this.#end("lost");
      default: // a status that only newer platforms know
    }
  }

  /** Asks the backend whether the machine is still usable. */
  async check(): Promise<void> {
    if (this.#isChecking || this.#isStarting || this.#isFailing || this.#isEnding) return;
    this.#isChecking = true;
    await bestEffort("check a machine", this.#log, async () => {
      const fault = (await this.#deps.backend.faultOf(this.#machine, this.isTaken)) ?? this.#startTimeout();
      if (fault) await this.#fail(fault);
    });
    this.#isChecking = false;
  }

  #startTimeout(): MachineFailed | undefined {
    const { clock, startTimeoutMs } = this.#deps;
    if (this.isTaken || clock.now().getTime() - this.#machine.startedMs < startTimeoutMs) return undefined;
    return new MachineFailed(
      "start_timeout",
      `The machine did not accept its run within ${Math.round(startTimeoutMs / 1_000)} s.`,
    );
  }

  /**
   * Reports a failed machine to the platform. The report is delayed, and the delay grows with consecutive failures, so
   * that a broken backend does not use up the attempts of all runs.
   */
  async #fail({ reason, message }: MachineFailed): Promise<void> {
    if (this.#isEnding || this.#isFailing) return;
    this.#isFailing = true;
    this.#log.warn({ operation: "dispatch", reason }, message);
    const taken = this.isTaken;
    const { client, timers, timings, signal } = this.#deps;
    const { executionId, attempt } = this;
    if (!taken) await pause(timers, this.#listener.failureDelayMs(), signal).catch(() => {});
    if (this.#isEnding || signal.aborted) return;
    const response = await retrying({ timers, timings }, signal, () =>
      client.failDispatch(
        { executionId, attempt, reason, message, taken },
        { timeoutMs: timings().callTimeoutMs, signal },
      ),
    ).catch((error: unknown) =>
      this.#log.warn({ operation: "failDispatch", error }, "the failure of a machine could not be reported"),
    );
    this.#isFailing = false;
    if (response?.taken) return; // a machine accepted the execution concurrently
    await this.#end(taken ? "lost" : "not_started");
  }

  /** Returns a lease that no machine has accepted. Its run is queued again without counting a lost attempt. */
  async returnLease(): Promise<void> {
    if (this.isTaken || this.#isEnding || this.#isFailing) return;
    const { executionId, attempt } = this;
    const { client, timings, signal } = this.#deps;
    const lease = {
      executionId,
      attempt,
      reason: "worker_stopping",
      message: "The worker is stopping.",
      failure: false,
    };
    const response = await client
      .returnLeases({ leases: [lease] }, { timeoutMs: timings().callTimeoutMs, signal })
      .catch((error: unknown) => {
        this.#log.warn({ operation: "ReturnLeases", error }, "a lease could not be returned; it expires by itself");
      });
    // otherwise a machine accepted the execution concurrently
    if (response && response.returned.length > 0) await this.#end("not_started");
  }

  /** Completes an execution that was cancelled before a machine accepted it: no other process can report its end. */
  async #cancel(): Promise<void> {
    if (this.#isEnding) return;
    const { client, timers, timings, signal } = this.#deps;
    const { executionId, attempt } = this;
    await this.#end("cancelled", () =>
      bestEffort("complete a cancelled execution", this.#log, () =>
        retrying({ timers, timings }, signal, () =>
          client.complete(
            { completions: [{ executionId, attempt, outcome: "CANCELLED", lastClientSeq: 0n }] },
            { timeoutMs: timings().callTimeoutMs, signal },
          ),
        ),
      ),
    );
  }

  #end(why: EndReason, afterwards: () => Promise<void> = async () => {}): Promise<void> {
    return this.#finish(async () => {
      await this.#ordered; // a pending request is awaited first; otherwise its machine would leak
      await retryAll(this.#deps, this.#log, () => this.#deps.backend.end(this.#machine, why));
      await afterwards();
    });
  }

  /** Runs `act`, which ends or forgets the machine, and then frees the slot. */
  async #finish(act: () => Promise<void>): Promise<void> {
    if (this.#isEnding) return;
    this.#isEnding = true;
    await bestEffort("end a machine", this.#log, act);
    this.#listener.ended();
  }
}

const END_TRIES = 5;

async function retryAll(
  { timers, timings, signal }: DispatchedExecutionDeps,
  log: Logger,
  act: () => Promise<void>,
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await act();
    } catch (error) {
      if (tries === END_TRIES || signal.aborted) throw error;
      log.warn({ operation: "end", error }, "a machine could not be ended; retrying");
      await pause(timers, retryDelayMs(timings(), tries), signal).catch(() => {});
    }
  }
}

const failureOf = (error: unknown): MachineFailed =>
  error instanceof MachineFailed
    ? error
    : new MachineFailed("dispatch_failed", "The worker could not request a machine.");
