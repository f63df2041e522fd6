import type { Caller } from "@millwright/caller";
import {
  localSession,
  outcomeOf,
  clientSeqOf,
  seqOf,
  workerEvent,
  type LocalEvent,
} from "../../runs/domain/local-run.ts";
import type { Message } from "../../runs/domain/message.ts";
import type { Run } from "../../runs/domain/run.ts";
import type { LeaseRef, RenewedLease, WorkerSession } from "../../runs/domain/worker-session.ts";
import { appendEvents, type AppendEventsDeps } from "../../runs/usecases/append-events.ts";
import { completeExecutions, type CompleteExecutionsDeps } from "../../runs/usecases/complete-executions.ts";
import type { ReportedLease } from "./heartbeat.ts";
import { requireRunVerb } from "../../runs/usecases/run-access.ts";

export type ReportLocalRunDeps = AppendEventsDeps &
  CompleteExecutionsDeps & {
    /** Errors: run_not_found. */
    getVisibleRun(caller: Caller, uid: string): Promise<Run>;
    /** Returns the lease of a client on a run. */
    findLocalLease(runUid: string, clientUid: string): Promise<LeaseRef | undefined>;
    renewLeases(session: WorkerSession, leases: readonly ReportedLease[]): Promise<readonly RenewedLease[]>;
    /** Returns the follow-ups sent to an execution that are not reported as delivered. */
    undeliveredFollowups(runUid: string, executionId: number): Promise<readonly Pick<Message, "uid" | "text">[]>;
    /** Returns the texts of follow-ups that the execution was sent, by uid. */
    textsOfFollowups(
      runUid: string,
      executionId: number,
      uids: readonly string[],
    ): Promise<ReadonlyMap<string, string>>;
  };

export type LocalReport = {
  readonly runUid: string;
  readonly clientUid: string;
  readonly events: readonly LocalEvent[];
};

export type LocalReportResult = {
  /**
   * held: continue · stopping: the run has ended, so terminate the command · over: this client no longer owns the
   * lease.
   */
  readonly lease: "held" | "stopping" | "over";
  readonly expiresAt?: Date;
  /** Every event up to this sequence number is stored; a client continues after it. */
  readonly ackedSeq: number;
  readonly followups: readonly Pick<Message, "uid" | "text">[];
  readonly run: Run;
};

/**
 * Stores the events that a client reports of the command that it executes, and renews the client's lease. If no report
 * arrives before the lease expires, the run ends as ERROR. An event that was reported before is ignored. An end event
 * completes the run; a follow-up that was not delivered to the command is then delivered to a further execution, in a
 * sandbox.
 *
 * Errors: run_not_found · not_authorized.
 */
export async function reportLocalRun(
  deps: ReportLocalRunDeps,
  caller: Caller,
  { runUid, clientUid, events }: LocalReport,
): Promise<LocalReportResult> {
  const { uid } = requireRunVerb(caller, await deps.getVisibleRun(caller, runUid), "run.manage");
  const over = async (ackedSeq = 0): Promise<LocalReportResult> => ({
    lease: "over",
    ackedSeq,
    followups: [],
    run: await deps.getVisibleRun(caller, uid),
  });
  const ref = await deps.findLocalLease(uid, clientUid);
  if (!ref) return over();
  const session = localSession(clientUid);
  // The phase IDLE exempts the command from the stall limit: it may produce no output for any time.
  const [lease] = await deps.renewLeases(session, [{ ...ref, phase: "IDLE", ackedDirectiveSeq: 0 }]);
  if (!lease) return over();
  const texts = await deps.textsOfFollowups(
    uid,
    ref.executionId,
    events.flatMap((event) => (event.kind === "followup" ? [event.followupUid] : [])),
  );
  const [appended] = await appendEvents(deps, session, [
    { ...ref, events: events.map((event) => workerEvent(event, texts)) },
  ]);
  const ackedSeq = seqOf(appended?.ackedClientSeq ?? 0);
  const last = events.at(-1);
  if (last?.kind === "end" && ackedSeq >= last.seq) {
    await completeExecutions(deps, session, [{ ...ref, ...outcomeOf(last.end), lastClientSeq: clientSeqOf(last.seq) }]);
    return over(ackedSeq);
  }
  return {
    lease: lease.isStopping ? "stopping" : "held",
    expiresAt: lease.expiresAt,
    ackedSeq,
    followups: await deps.undeliveredFollowups(uid, ref.executionId),
    run: await deps.getVisibleRun(caller, uid),
  };
}
