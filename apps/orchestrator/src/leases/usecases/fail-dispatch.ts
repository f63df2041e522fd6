import { newUid } from "@millwright/ids";
import { lifecycleOf, type LockedRun, type RunChange } from "../../runs/domain/run-change.ts";
import type { NewRunEvent } from "../../runs/domain/run-events.ts";
import { isExecuting, transition } from "../../runs/domain/run-state.ts";
import type { InRunTransaction, RunTransaction } from "../../runs/store/run-transaction.ts";
import { isTerminal, statusMessage } from "../../runs/domain/run.ts";
import type { LeaseRef, WorkerSession } from "../../runs/domain/worker-session.ts";
import { endExecution } from "../../runs/usecases/end-execution.ts";
import { finished, requeuedEvent } from "../../runs/usecases/execution-events.ts";
import { settleChanges } from "../../runs/usecases/settle-changes.ts";

/** Why no machine executes a dispatched execution: a machine-readable reason and the message of the backend. */
export type DispatchFailure = LeaseRef & {
  readonly reason: string;
  readonly message: string;
  /** The dispatcher knows that a worker process has taken the execution over. */
  readonly isTaken?: boolean;
};

/**
 * Ends an attempt that this session dispatched and whose machine could not be started, or is gone. The attempt is lost
 * at once instead of when its lease expires. The run is queued again; after too many losses it ends with the reason. If
 * the machine was killed because the run needs more memory, the run has failed and is not repeated. An attempt that this session did not dispatch is left unchanged. So is an attempt that a worker process has taken over
 * without the dispatcher's knowledge; `isTaken` is then true.
 */
export async function failDispatch(
  deps: { readonly runs: InRunTransaction },
  session: WorkerSession,
  failure: DispatchFailure,
): Promise<{ readonly isTaken: boolean }> {
  const { executionId, attempt } = failure;
  const notTaken = { isTaken: false };
  return deps.runs(async (tx) => {
    const ref = await tx.runOfExecution(executionId);
    if (!ref) return notTaken;
    const locked = await tx.lockRuns([ref.uid, ...(ref.parentRunUid ? [ref.parentRunUid] : [])], [executionId]);
    const run = locked.find(({ uid }) => uid === ref.uid);
    if (
      run?.execution.id !== executionId ||
      run.execution.attempt !== attempt ||
      !isExecuting(run.execution.state) ||
      run.execution.lease?.dispatcherUid !== session.uid
    )
      return notTaken;
    if (run.execution.lease.sessionUid !== session.uid && !failure.isTaken) return { isTaken: true };
    const change =
      failure.reason === "container_oom" && run.execution.lease.sessionUid !== session.uid
        ? await outOfMemory(tx, run, failure)
        : await lost(tx, run, failure);
    const events = [lossEvent(run, failure, session), ...change.events];
    await settleChanges(tx, [{ ...change, events }], locked, {
      actor: { type: "worker", uid: session.workerHost },
      requestId: newUid(),
    });
    return notTaken;
  });
}

async function lost(tx: RunTransaction, run: LockedRun, { reason, message }: DispatchFailure): Promise<RunChange> {
  const { id, state } = run.execution;
  const next = transition(lifecycleOf(run), { type: "lose", policy: await tx.onWorkerLoss(run.uid) });
  if (!isTerminal(next.run))
    return { run, next, events: [requeuedEvent(state === "RUNNING" ? "resumed" : "restarted", id)] };
  const status = next.status && { ...next.status, message: statusMessage(`${next.status.message} ${message}`) };
  const ended = { ...next, status };
  return { run, next: ended, events: [finished(ended, id, { reason })] };
}

const outOfMemory = (tx: RunTransaction, run: LockedRun, { executionId, attempt, reason, message }: DispatchFailure) =>
  endExecution(tx, run, {
    executionId,
    attempt,
    outcome: "FAILED",
    error: { code: reason, message, retryable: false, reason },
    lastClientSeq: 0,
  });

function lossEvent(run: LockedRun, { reason, message }: DispatchFailure, session: WorkerSession): NewRunEvent {
  const { id, attempt, workerHost = "", lease } = run.execution;
  const kind = lease?.sessionUid === session.uid ? "dispatch_failed" : "worker_lost";
  return { kind, payload: { worker_host: workerHost, reason, message, attempt }, executionId: id };
}
