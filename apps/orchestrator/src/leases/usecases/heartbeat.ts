import { pendingDirectives, type PendingDirectivesDeps } from "./pending-directives.ts";
import type { RunTokenClaims } from "../../runs/domain/run-token.ts";
import type { LinkedDirective } from "../../runs/domain/directive.ts";
import type { DispatchStatus, LeaseRef, RenewedLease, WorkerSession } from "../../runs/domain/worker-session.ts";

export type HeartbeatDeps = PendingDirectivesDeps & {
  /** Records that the worker is connected, its state and its free slots. */
  touchSession(session: WorkerSession, reported: { state: "READY" | "DRAINING"; freeSlots: number }): Promise<void>;
  /** Renews leases. A lease that is not returned is lost. */
  renewLeases(session: WorkerSession, leases: readonly ReportedLease[]): Promise<readonly RenewedLease[]>;
  ackDirectives(session: WorkerSession, acks: readonly (LeaseRef & { readonly seq: number })[]): Promise<void>;
  mintRunToken(claims: RunTokenClaims): Promise<string>;
  countModelCalls?(counts: readonly ModelCallCount[]): void;
  /** Returns the status of dispatched executions, and renews those that no worker process has taken over yet. */
  watchDispatches(session: WorkerSession, watched: readonly LeaseRef[]): Promise<readonly DispatchStatus[]>;
};

export type ReportedLease = LeaseRef & { readonly phase: string; readonly ackedDirectiveSeq: number };

/** The number of model calls since the worker's last report. */
export type ModelCallCount = { readonly provider: string; readonly outcome: string; readonly count: number };

export type Heartbeat = {
  readonly state: "READY" | "DRAINING";
  readonly freeSlots: number;
  readonly leases: readonly ReportedLease[];
  readonly modelCalls?: readonly ModelCallCount[];
  /** The executions that the worker has dispatched. */
  readonly watched?: readonly LeaseRef[];
};

export type LeaseStatus = LeaseRef & {
  readonly status: "OK" | "STOP" | "LOST";
  readonly expiresAt?: Date;
  readonly runToken?: string;
};

/**
 * Renews all leases of a worker. Returns which leases are lost, which executions to stop, and the directives that the
 * worker has not acknowledged. A stopping execution receives no new run token.
 */
export async function heartbeat(
  deps: HeartbeatDeps,
  session: WorkerSession,
  report: Heartbeat,
): Promise<{
  leases: readonly LeaseStatus[];
  watched: readonly DispatchStatus[];
  directives: readonly LinkedDirective[];
}> {
  await deps.touchSession(session, report);
  deps.countModelCalls?.(report.modelCalls ?? []);
  await deps.ackDirectives(
    session,
    report.leases.map(({ executionId, attempt, ackedDirectiveSeq }) => ({
      executionId,
      attempt,
      seq: ackedDirectiveSeq,
    })),
  );
  const renewed = await deps.renewLeases(session, report.leases);
  const leases = await Promise.all(
    report.leases.map(async ({ executionId, attempt }): Promise<LeaseStatus> => {
      const lease = renewed.find((candidate) => candidate.executionId === executionId && candidate.attempt === attempt);
      if (!lease) return { executionId, attempt, status: "LOST" };
      if (lease.isStopping) return { executionId, attempt, status: "STOP", expiresAt: lease.expiresAt };
      const runToken = await deps.mintRunToken({ run: lease.run, executionId, attempt, expiresAt: lease.expiresAt });
      return { executionId, attempt, status: "OK", expiresAt: lease.expiresAt, runToken };
    }),
  );
  const watched = await deps.watchDispatches(session, report.watched ?? []);
  return { leases, watched, directives: await pendingDirectives(deps, session) };
}
