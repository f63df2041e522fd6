import type { ExecutionResult } from "../context/execution-context.ts";
import type { ParkedWorkspaces } from "../state/parked-workspaces.ts";
import { pause, unlessAborted } from "../time/timers.ts";
import { completeExecution, type CompleteDeps } from "./complete-execution.ts";
import type { LeaseReturn } from "./execution-outcome.ts";
import { returnLease, type ReturnLeaseDeps } from "./return-lease.ts";
import type { StartFailures } from "./start-failures.ts";

export type OutcomeReporterDeps = CompleteDeps &
  ReturnLeaseDeps & {
    readonly parked: Pick<ParkedWorkspaces, "drop">;
    readonly startFailures: StartFailures;
    /** Whether a handled directive was not reported as acknowledged by a heartbeat. */
    readonly hasUnreportedAcks: () => boolean;
    /** Aborted when the worker no longer owns the attempt. */
    readonly lost: AbortSignal;
  };

/** Reports how an attempt ended: with an outcome, with an open debug window, or by the return of its lease. */
export class OutcomeReporter {
  readonly #deps: OutcomeReporterDeps;

  constructor(deps: OutcomeReporterDeps) {
    this.#deps = deps;
  }

  /** Reports the outcome. Returns whether the platform has recorded it. Never rejects. */
  async complete(
    result: ExecutionResult,
    { runUid, parkedMs }: { readonly runUid: string; readonly parkedMs: number },
  ): Promise<boolean> {
    const { heartbeatNow, hasUnreportedAcks, log, lost, parked } = this.#deps;
    try {
      // A directive that was handled but not acknowledged would be delivered to the next execution again.
      if (hasUnreportedAcks()) await unlessAborted(heartbeatNow(), lost);
      await completeExecution(this.#deps, result, lost, { parkedMs });
      log.info({ operation: "Complete", outcome: result.outcome }, "execution completed");
      return true;
    } catch (error) {
      log.warn({ operation: "Complete", outcome: result.outcome, error }, "execution not completed");
      // another attempt continues with the saved workspace
      if (parkedMs > 0) await parked.drop(runUid);
      return false;
    }
  }

  /** Reports a failed setup whose workspace is retained for debugging. Throws like `completeExecution`. */
  async openDebugWindow(result: ExecutionResult, signal: AbortSignal): Promise<void> {
    await completeExecution(this.#deps, result, signal, { retained: true });
    this.#deps.log.info({ operation: "Complete", outcome: result.outcome }, "debug window opened");
  }

  /**
   * Returns the lease, after a delay that grows with consecutive failures to start. `stopped` ends the delay. Returns
   * whether the platform has accepted it. Never rejects.
   */
  async returnLease(leaseReturn: LeaseReturn, stopped: AbortSignal): Promise<boolean> {
    const { startFailures, timers, timings, hasUnreportedAcks, lost } = this.#deps;
    if (leaseReturn.isFailure) await pause(timers, startFailures.add(timings()), stopped).catch(() => {});
    return returnLease(this.#deps, leaseReturn, hasUnreportedAcks, lost);
  }
}
