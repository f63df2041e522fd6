import { newUid } from "@millwright/ids";
import { lifecycleOf, type LockedRun, type RunChange } from "../../runs/domain/run-change.ts";
import type { NewRunEvent } from "../../runs/domain/run-events.ts";
import { isExecuting, transition, type Next } from "../../runs/domain/run-state.ts";
import type { InRunTransaction, RunTransaction } from "../../runs/store/run-transaction.ts";
import { isTerminal } from "../../runs/domain/run.ts";
import type { LeaseRef, WorkerSession } from "../../runs/domain/worker-session.ts";
import { finished, requeuedEvent, windowEnded } from "../../runs/usecases/execution-events.ts";
import { settleChanges } from "../../runs/usecases/settle-changes.ts";

/** An accepted lease that its worker returns. */
export type ReturnedLease = LeaseRef & {
  /** Machine-readable, such as `worker_stopping` or `sandbox_start_failed`. */
  readonly reason: string;
  readonly message: string;
  /** The worker could not execute the run. It counts as a lost worker; a planned return does not. */
  readonly isFailure: boolean;
};

/**
 * Queues the runs of returned leases again at once, instead of when the leases expire. A run whose agent was working
 * and must not be resumed (`on_worker_loss: fail`) ends as if its worker were lost. A run whose returned attempts
 * failed too often ends with the reason of the last one. Leases that this session does not own are ignored. Returns the
 * leases that were returned.
 */
export async function returnLeases(
  deps: { readonly runs: InRunTransaction },
  session: WorkerSession,
  leases: readonly ReturnedLease[],
): Promise<LeaseRef[]> {
  const returned: LeaseRef[] = [];
  for (const lease of leases) if (await deps.runs((tx) => returnLease(tx, session, lease))) returned.push(lease);
  return returned;
}

async function returnLease(tx: RunTransaction, session: WorkerSession, returned: ReturnedLease): Promise<boolean> {
  const { executionId, attempt } = returned;
  const ref = await tx.runOfExecution(executionId);
  if (!ref) return false;
  const locked = await tx.lockRuns([ref.uid, ...(ref.parentRunUid ? [ref.parentRunUid] : [])], [executionId]);
  const run = locked.find(({ uid }) => uid === ref.uid);
  const lease = run?.execution.lease;
  const isOwn =
    run?.execution.id === executionId &&
    lease?.attempt === attempt &&
    lease.isAccepted &&
    lease.sessionUid === session.uid;
  if (!run || !isOwn) return false;
  await settleChanges(tx, [await changeFor(tx, run, returned)], locked, {
    actor: { type: "worker", uid: session.workerHost },
    requestId: newUid(),
  });
  return true;
}

async function changeFor(tx: RunTransaction, run: LockedRun, returned: ReturnedLease): Promise<RunChange> {
  const { state } = run.execution;
  if (state === "DEBUG") return windowEnded(run, { type: "lose" }, "worker_lost");
  // Stopping: its run has ended already.
  if (!isExecuting(state)) return { run, next: transition(lifecycleOf(run), { type: "lose" }), events: [] };
  const policy = await tx.onWorkerLoss(run.uid);
  const isLoss = returned.isFailure || (state === "RUNNING" && policy !== "resume");
  const next = transition(lifecycleOf(run), isLoss ? { type: "lose", policy } : { type: "return" });
  return { run, next: returned.isFailure ? withCause(next, returned) : next, events: eventsOf(run, next, returned) };
}

const withCause = (next: Next, { message }: ReturnedLease): Next =>
  isTerminal(next.run) && next.status
    ? { ...next, status: { ...next.status, message: `No worker could execute this run. ${message}` } }
    : next;

function eventsOf(run: LockedRun, next: Next, { reason, message, isFailure }: ReturnedLease): NewRunEvent[] {
  const { id, attempt, state, workerHost = "" } = run.execution;
  const payload = { worker_host: workerHost, reason, message, attempt };
  const returned: NewRunEvent = { kind: isFailure ? "attempt_failed" : "worker_stopped", payload, executionId: id };
  return [
    returned,
    isTerminal(next.run)
      ? finished(next, id, { reason })
      : requeuedEvent(state === "RUNNING" ? "resumed" : "restarted", id),
  ];
}
