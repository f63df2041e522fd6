import type { Clock } from "@millwright/clock";
import type { worker } from "@millwright/contracts";
import type { Logger } from "@millwright/telemetry";
import type { ModelCallCounts } from "../model/model-call-counts.ts";
import { platformError } from "../protocol/platform-error.ts";
import type { WorkerClient } from "../protocol/client.ts";
import { retryDelayMs } from "../protocol/retrying.ts";
import type { Timings } from "../protocol/timings.ts";
import type { CancelTimer, Timers } from "../time/timers.ts";
import { momentOf, type Moment } from "../time/moment.ts";

/** A lease in the form that heartbeats require. */
export type RenewableLease = {
  readonly executionId: bigint;
  readonly attempt: number;
  readonly phase: string;
  readonly ackedDirectiveSeq: bigint;
  /** Called when the platform has confirmed the lease with the heartbeat sent at `sent`. */
  renewed(sent: Moment, runToken: string, ackedDirectiveSeq: bigint): void;
  /** Called when the platform stops the execution. The lease remains valid for its last events. */
  stop(): void;
  /** Called when the platform has declared the attempt lost. */
  lose(): void;
  /** Ends the attempt if its outbound gate has been closed for too long. */
  checkGate(): void;
};

/** A dispatched execution in the form that heartbeats require. */
export type WatchedLease = {
  readonly executionId: bigint;
  readonly attempt: number;
  /** Called with the platform's status of the execution. */
  onStatus(status: worker.WatchedStatus): void;
};

export type LeaseRenewerDeps = {
  readonly client: Pick<WorkerClient, "heartbeat">;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly timings: () => Timings;
  readonly log: Logger;
  readonly leases: () => readonly RenewableLease[];
  readonly watched?: () => readonly WatchedLease[];
  readonly state: () => { readonly state: "READY" | "DRAINING"; readonly freeSlots: number };
  readonly onDirective: (directive: worker.Directive) => void;
  readonly modelCalls: ModelCallCounts;
};

/** Renews all leases in one call per heartbeat, delivers directives, and checks for gates that stay closed. */
export class LeaseRenewer {
  readonly #deps: LeaseRenewerDeps;
  readonly #signal: AbortSignal;
  #cancelHeartbeat: CancelTimer = () => {};
  #running: Promise<boolean> = Promise.resolve(true);
  #failures = 0;
  #isHeartbeatDue = false;

  /** Creates a renewer that runs until `signal` is aborted. */
  constructor(deps: LeaseRenewerDeps, signal: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
    signal.addEventListener("abort", () => this.#cancelHeartbeat(), { once: true });
  }

  start(): void {
    void this.heartbeatNow();
    this.#watch();
  }

  /** Sends a heartbeat after this call. Resolves to whether it succeeded. */
  heartbeatNow(): Promise<boolean> {
    this.#running = this.#running.then(() => this.#sendHeartbeat());
    return this.#running;
  }

  /** Schedules a heartbeat. Further calls before it starts share it. */
  heartbeatSoon(): void {
    if (this.#isHeartbeatDue) return;
    this.#isHeartbeatDue = true;
    void this.heartbeatNow();
  }

  async #sendHeartbeat(): Promise<boolean> {
    this.#isHeartbeatDue = false;
    if (this.#signal.aborted) return false;
    this.#cancelHeartbeat();
    const { heartbeatMs } = this.#deps.timings();
    const isAlive = await this.#exchange();
    this.#failures = isAlive ? 0 : this.#failures + 1;
    const delayMs = isAlive
      ? heartbeatMs
      : Math.min(heartbeatMs, retryDelayMs(this.#deps.timings(), this.#failures - 1));
    if (!this.#signal.aborted) this.#cancelHeartbeat = this.#deps.timers.after(delayMs, () => void this.heartbeatNow());
    return isAlive;
  }

  async #exchange(): Promise<boolean> {
    const { client, clock, timings, log } = this.#deps;
    const leases = this.#deps.leases().map((lease) => ({ lease, ackedDirectiveSeq: lease.ackedDirectiveSeq }));
    const watched = this.#deps.watched?.() ?? [];
    const sent = momentOf(clock);
    const modelCalls = this.#deps.modelCalls.take();
    try {
      const response = await client.heartbeat(
        {
          ...this.#deps.state(),
          modelCalls: [...modelCalls],
          watched: watched.map(({ executionId, attempt }) => ({ executionId, attempt })),
          leases: leases.map(({ lease, ackedDirectiveSeq }) => ({
            executionId: lease.executionId,
            attempt: lease.attempt,
            phase: lease.phase,
            ackedDirectiveSeq,
          })),
        },
        { timeoutMs: timings().heartbeatTimeoutMs, signal: this.#signal },
      );
      for (const status of response.leases) {
        const renewed = leases.find(
          ({ lease }) => lease.executionId === status.executionId && lease.attempt === status.attempt,
        );
        if (renewed) applyStatus(renewed.lease, status, sent, renewed.ackedDirectiveSeq);
      }
      for (const status of response.watched)
        watched
          .find(({ executionId, attempt }) => executionId === status.executionId && attempt === status.attempt)
          ?.onStatus(status);
      for (const directive of response.directives) this.#deps.onDirective(directive);
      return true;
    } catch (error) {
      this.#deps.modelCalls.putBack(modelCalls);
      if (!this.#signal.aborted)
        log.warn({ operation: "Heartbeat", reason: platformError(error).reason }, "heartbeat failed");
      return false;
    }
  }

  #watch(): void {
    if (this.#signal.aborted) return;
    for (const lease of this.#deps.leases()) lease.checkGate();
    const cancel = this.#deps.timers.after(this.#deps.timings().watchMs, () => {
      this.#signal.removeEventListener("abort", cancel);
      this.#watch();
    });
    this.#signal.addEventListener("abort", cancel, { once: true });
  }
}

function applyStatus(lease: RenewableLease, status: worker.LeaseStatus, sent: Moment, ackedDirectiveSeq: bigint): void {
  switch (status.status) {
    case "LOST":
      return lease.lose();
    case "STOP":
      lease.renewed(sent, status.runToken, ackedDirectiveSeq);
      return lease.stop();
    case "OK":
      return lease.renewed(sent, status.runToken, ackedDirectiveSeq);
    default: // a status that only newer platforms know: the lease is neither renewed nor lost
  }
}
